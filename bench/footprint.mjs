// npm run bench:footprint: the number of Baton's files that one streamed message runs through.
// One API and one worker with `echo`, and precise coverage of both. Counts what runs during each of several messages, after a
// first one that fills the caches. So periodic work (sweeps, clocks) does not count.
// LIST=1 prints the files.
import { existsSync, readFileSync } from 'node:fs';
import { createRequire, SourceMap } from 'node:module';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { WebSocket } from 'undici';

const require = createRequire(import.meta.url);
require('../test/support/load-typescript.js');
const { startServices } = require('../test/support/services.ts');
const MESSAGES = 25;
const ROOT = fileURLToPath(new URL('../', import.meta.url));
const DIST = join(ROOT, 'dist/');

/** Finds the file of a function in a process's bundle, by the source map of the bundle. */
class Bundle {
  #source;
  #lines = [0];
  #map;
  #folder;

  constructor(path) {
    this.#source = readFileSync(path, 'utf8');
    for (const { index } of this.#source.matchAll(/\n/g)) this.#lines.push(index + 1);
    this.#map = new SourceMap(JSON.parse(readFileSync(`${path}.map`, 'utf8')));
    this.#folder = dirname(path);
  }

  /** Path of the file in the repository. */
  fileAt(offset) {
    const line = this.#lines.findLastIndex((start) => start <= offset);
    const { originalSource = '' } = this.#map.findEntry(line, offset - this.#lines[line]);
    return relative(ROOT, resolve(this.#folder, originalSource));
  }

  /** Whether a function is a getter with which a compiled module exports: `get name() {` or `get: function() {`. */
  isExport(name, offset) {
    return (
      name.startsWith('get ') ||
      /\bget:(\/\*.*?\*\/)?(__name\()?$/.test(this.#source.slice(offset - 40, offset))
    );
  }
}

/** One process under V8's inspector. */
class Inspected {
  #socket;
  #calls = new Map();
  #id = 0;
  #bundles = new Map();

  static async connect(log) {
    const url = /Debugger listening on (ws:\S+)/.exec(log)[1];
    const inspected = new Inspected();
    inspected.#socket = new WebSocket(url);
    inspected.#socket.addEventListener('message', ({ data }) => {
      const { id, result } = JSON.parse(data);
      inspected.#calls.get(id)?.(result);
    });
    await new Promise((resolve, reject) => {
      inspected.#socket.addEventListener('open', resolve);
      inspected.#socket.addEventListener('error', reject);
    });
    await inspected.#call('Profiler.enable');
    await inspected.#call('Profiler.startPreciseCoverage', { callCount: true, detailed: false });
    return inspected;
  }

  /** What ran since the last time: `file function@offset` of the build. */
  async executed() {
    const { result } = await this.#call('Profiler.takePreciseCoverage');
    const functions = new Set();
    for (const { url, functions: all } of result.filter(({ url }) => url.includes('/dist/'))) {
      const path = fileURLToPath(url.startsWith('file:') ? url : `file://${url}`);
      // What starts a bundle has no source of its own, and so no map.
      if (!path.startsWith(DIST) || !existsSync(`${path}.map`)) continue;
      if (!this.#bundles.has(path)) this.#bundles.set(path, new Bundle(path));
      for (const { functionName, ranges } of all) {
        const [{ count, startOffset }] = ranges;
        const bundle = this.#bundles.get(path);
        if (count === 0 || bundle.isExport(functionName, startOffset)) continue;
        const file = bundle.fileAt(startOffset);
        if (/^(apps|libs)\/.*\.ts$/.test(file)) functions.add(`${file} ${functionName}@${startOffset}`);
      }
    }
    return functions;
  }

  close() {
    this.#socket.close();
  }

  #call(method, params = {}) {
    const id = ++this.#id;
    return new Promise((resolve) => {
      this.#calls.set(id, resolve);
      this.#socket.send(JSON.stringify({ id, method, params }));
    });
  }
}

const stopServices = await startServices();
const { DRIVERS } = require('../test/support/redis.ts');
const { Stack } = require('../test/support/stack.ts');
const { RawCaller, sendParams } = require('../test/support/raw-caller.ts');
const stack = await Stack.start({ driver: DRIVERS[0], env: { NODE_OPTIONS: '--inspect=127.0.0.1:0' } });
try {
  const { token } = await stack.createTenant();
  const caller = new RawCaller(stack.url(0), token);
  const stream = async () => {
    const params = sendParams('hello', { metadata: { echo: { chunks: 3 } } });
    for await (const frame of caller.stream('SendStreamingMessage', params)) void frame;
  };
  await stream();
  const processes = [stack.apis[0], stack.workers[0]];
  const inspected = await Promise.all(processes.map(({ log }) => Inspected.connect(log())));
  const taken = () => Promise.all(inspected.map((each) => each.executed()));
  await stream();
  await taken();
  const spoken = [];
  for (let i = 0; i < MESSAGES; i++) {
    await stream();
    spoken.push(await taken());
  }
  const files = new Set();
  for (const [i, name] of ['API', 'worker'].entries()) {
    const functions = [...spoken[0][i]].filter((each) => spoken.every((message) => message[i].has(each)));
    const own = new Set(functions.map((each) => each.split(' ')[0]));
    for (const file of own) files.add(file);
    console.log(`${name}: ${own.size} files, ${functions.length} functions`);
  }
  if (files.size === 0)
    throw new Error('No file was counted: the build has no source maps. Run `npm run build`');
  if (process.env.LIST) console.log([...files].sort().join('\n'));
  console.log(`One streamed message: ${files.size} files`);
  for (const each of inspected) each.close();
} finally {
  await stack.stop();
  await stopServices();
}
process.exit(0);
