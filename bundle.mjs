/**
 * Bundles each program into one file. A process that loads one file instead of 1,200 starts with 40 % less CPU. V8's code
 * cache of that file saves another fifth. The compiled main file becomes what runs the two. A thread of each worker is bundled
 * without a cache. Other threads and agents' processes run the compiled files.
 */
import { build } from 'esbuild';
import { execFile } from 'node:child_process';
import { readFile, rm, writeFile } from 'node:fs/promises';
import { dirname, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const ROOT = dirname(fileURLToPath(import.meta.url));

/** No database listens here. */
const NO_DATABASE = { DATABASE_URL: 'postgres://127.0.0.1:9/baton' };

/** What is bundled: its main file, and how it runs when its code cache is written. */
const PROGRAMS = [
  { main: 'apps/api/src/main' },
  { main: 'apps/worker/src/main' },
  { main: 'apps/local/src/main' },
  // Each command loads what it needs. Most need what this one does.
  { main: 'apps/cli/src/main', args: ['tenants', 'list'], env: NO_DATABASE },
  { main: 'libs/database/src/migrate-main' },
];

/** Threads that are bundled in place. Each start of a worker loads them: hundreds of files cost nine times the CPU of one. */
const THREADS = ['libs/database/src/runs/leases/lease-thread'];

/** Packages that stay in node_modules. */
const EXTERNAL = [
  // They find a thread, a native module or WebAssembly by their own path.
  '@prisma/client/runtime/query_compiler*',
  '@prisma/schema-engine-wasm',
  'libpg-query',
  'msgpackr-extract',
  'piscina',
  // Loaded when they are first used.
  '@ai-sdk/*',
  '@bufbuild/*',
  '@grpc/*',
  '@modelcontextprotocol/*',
  '@opentelemetry/exporter-*',
  '@opentelemetry/resources',
  '@opentelemetry/sdk-logs',
  '@opentelemetry/sdk-metrics',
  '@opentelemetry/sdk-trace-base',
  'ai',
  'undici',
  // Optional packages of Nest. Baton does not install them.
  '@fastify/multipart',
  '@fastify/static',
  '@fastify/view',
  '@nestjs/microservices',
  '@nestjs/platform-express',
  '@nestjs/websockets',
  'class-transformer',
  'class-validator',
];

/** What packages ask of their surroundings when they are loaded. */
const DEFINE = {
  // pg asks whether it is at Cloudflare. Without a navigator, as in Node.js 20, it creates a Response, which loads all of fetch.
  navigator: '{"userAgent":"Node.js"}',
  // Its native half only reads. BullMQ only writes with it.
  'process.env.MSGPACKR_NATIVE_ACCELERATION_DISABLED': '"true"',
};

/** Keeps the `__dirname` of each compiled file. Threads and migrations are found from there. */
const ownFolders = {
  name: 'own-folders',
  setup({ onLoad, initialOptions }) {
    onLoad({ filter: /\/dist\/(apps|libs)\/.*\.js$/ }, async ({ path }) => {
      const contents = await readFile(path, 'utf8');
      if (!contents.includes('__dirname')) return undefined;
      const folder = relative(dirname(initialOptions.outfile), dirname(path));
      // No line of its own: the source map counts lines.
      const here = `const __dirname = require('node:path').join(BUNDLE_FOLDER, ${JSON.stringify(folder)});`;
      return { contents: here + contents, loader: 'js' };
    });
  },
};

const OPTIONS = {
  bundle: true,
  platform: 'node',
  target: 'node20',
  format: 'cjs',
  external: EXTERNAL,
  define: DEFINE,
  plugins: [ownFolders],
  // A process keeps this text in memory, and the position of each line.
  minifyWhitespace: true,
  lineLimit: 200,
  sourcemap: true,
  sourcesContent: false,
  logLevel: 'warning',
};

/** esbuild leaves other characters in comments and in regular expressions alone. Both may have escapes in their place. */
const ascii = (text) =>
  text.replace(/[^\x00-\x7f]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);

/**
 * Runs the bundle beside it, a function of a module's variables. V8 ignores a cache of another version of Node.js or of other V8
 * flags, and compiles. The bundle is ASCII and whole as it is: read as Latin-1, V8 uses it without a copy.
 *
 * V8 would not collect old objects before they take a multiple of what a process needs. It sets that limit by the memory of
 * the machine, which a container shares with others. And it would let the space for new objects grow to 32 MB. No flag limits
 * that once a process runs, but the space does not grow by a factor of 1. With every thread V8 sets that factor to 2 again.
 * V8 also makes the space small when it collects while a process has little to do. Then it must be able to grow again.
 * V8 of Node.js 26 does not read the factor again, so there the space has the size that V8 gives it.
 *
 * V8 of Node.js 20 optimizes a function that runs once in a call only after a thousand calls and more. With an eighth of the budget
 * it does so after a hundred. That waits until the start is over: to optimize what runs then would double its CPU time. Later
 * releases do not have the flag, and optimize in a first step after 400 calls.
 */
const RUN = `'use strict';
const { readFileSync } = require('node:fs');
const Module = require('node:module');
const { join } = require('node:path');
const { PerformanceObserver } = require('node:perf_hooks');
const v8 = require('node:v8');
const vm = require('node:vm');

/** New objects get 12 MB twice: objects move from one half to the other. */
const NEW_OBJECTS = 24 * 1024 * 1024;
/** A start is over by then. */
const STARTED_MS = 10_000;

// The flags of the code cache: with others V8 refuses it.
limitOldObjects();
v8.setFlagsFromString('--semi-space-growth-factor=1');
if (Number.parseInt(process.versions.v8) < 12) setTimeout(optimizeSooner, STARTED_MS).unref();
process.on('worker', limitWhileStarting);
const filename = join(__dirname, 'bundle.js');
const cachePath = join(__dirname, 'bundle.cache');

function optimizeSooner() {
  v8.setFlagsFromString('--interrupt-budget=8000');
}

function limitOldObjects() {
  v8.setFlagsFromString('--heap-growing-percent=50');
}

/** Lets the space grow at once. It grows when enough objects have outlived a collection. */
function fillNewObjects() {
  v8.setFlagsFromString('--semi-space-growth-factor=12');
  const alive = [];
  while (sizeOfNewObjects() < NEW_OBJECTS && alive.length < 1_000) alive.push(new Array(1_000).fill(0));
  limitNewObjects();
}

/** The space grows in few steps, and not beyond its limit. This runs after a collection: until then the last factor counts. */
function limitNewObjects() {
  const factor = Math.min(4, Math.floor(NEW_OBJECTS / sizeOfNewObjects()));
  v8.setFlagsFromString('--semi-space-growth-factor=' + Math.max(1, factor));
}

/** A thread sets the factor for the whole process, some time before it is online. */
function limitWhileStarting(thread) {
  const often = setInterval(limitNewObjects, 1).unref();
  const end = () => {
    clearInterval(often);
    limitNewObjects();
  };
  thread.once('online', end).once('exit', end);
}

function sizeOfNewObjects() {
  return v8.getHeapSpaceStatistics().find((space) => space.space_name === 'new_space').space_size;
}

function readCache() {
  try {
    return readFileSync(cachePath);
  } catch {
    return undefined;
  }
}

function compile() {
  return new vm.Script(readFileSync(filename, 'latin1'), { filename, cachedData: readCache() });
}

/** What modules create lives on: a collection while they load frees nothing, and copies it. So the limits are set after that. */
function run(load) {
  v8.setFlagsFromString('--heap-growing-percent=0');
  load.call(exports, exports, Module.createRequire(filename), module, filename, __dirname);
  limitOldObjects();
  fillNewObjects();
  new PerformanceObserver(limitNewObjects).observe({ type: 'gc' });
}
`;

/** With --enable-source-maps Node.js has to load the file itself. */
const START = `${RUN}
if (process.sourceMapsEnabled) require(filename);
else compile().runInThisContext();
run(globalThis.batonBundle);
`;

/** Writes the cache when all modules are loaded. Without arguments the process ends before anything starts. */
const WRITE_CACHE = `${RUN}
const script = compile();
process.once('exit', () => {
  // As when the cache is read: V8 compares the flags. A process that ends so soon may not have come to its last factor.
  v8.setFlagsFromString('--semi-space-growth-factor=1');
  require('node:fs').writeFileSync(cachePath, script.createCachedData());
});
run(script.runInThisContext());
if (process.argv.length === 2) process.exit(0);
`;

/** Arguments name the folders of the programs that are bundled, such as apps/api. Without any, all are. */
const folders = process.argv.slice(2);
const programs = PROGRAMS.filter(
  ({ main }) => folders.length === 0 || folders.some((folder) => main.startsWith(`${folder}/`)),
);

await Promise.all([...programs.map(bundle), ...THREADS.map(bundleThread)]);

async function bundleThread(thread) {
  const file = `${ROOT}/dist/${thread}.js`;
  await build({
    ...OPTIONS,
    entryPoints: [file],
    outfile: file,
    allowOverwrite: true,
    banner: { js: '"use strict"; const BUNDLE_FOLDER = __dirname;' },
  });
}

async function bundle({ main, args = [], env = {} }) {
  const entry = `${ROOT}/dist/${main}.js`;
  const folder = dirname(entry);
  const outfile = `${folder}/bundle.js`;
  // V8 would take the cache of another bundle of the same length.
  await rm(`${folder}/bundle.cache`, { force: true });
  const { outputFiles } = await build({
    ...OPTIONS,
    entryPoints: [entry],
    outfile,
    // Code from a cache of Node.js 20 cannot import(). It requires at the same moment.
    supported: { 'dynamic-import': false },
    // In parentheses, so that V8 compiles it at once.
    banner: {
      js: `globalThis.batonBundle = (function (exports, require, module, __filename, __dirname) { "use strict"; const BUNDLE_FOLDER = __dirname;`,
    },
    footer: { js: '});' },
    write: false,
  });
  // Inside a function "#!" is an error.
  for (const { path, text } of outputFiles)
    await writeFile(path, path === outfile ? ascii(text.replace(/^#!/, '//')) : text);
  await writeFile(entry, WRITE_CACHE);
  // The command fails for want of a database.
  await promisify(execFile)(process.execPath, [entry, ...args], { env }).catch(() => undefined);
  await writeFile(entry, START);
  await rm(`${entry}.map`, { force: true });
}
