import * as ts from 'typescript';
import { execFile } from 'node:child_process';
import { cp, mkdir, mkdtemp, readFile, realpath, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';

/** Loads a folder's executor and prints the kinds of events it publishes, or why it could not be loaded. */
const PROBE = `
const { loadExecutor } = require('./load-executor.js');
const { loadFaultOf } = require('./load-fault.js');
const [, , folder, file] = process.argv;
const bus = { publish: (event) => kinds.push(event.kind), finished() {} };
const kinds = [];
const userMessage = { messageId: 'm', role: 1, parts: [{ content: { $case: 'text', value: '1' } }] };
loadExecutor(folder, file)
  .then((create) => create().execute({ taskId: 't', contextId: 'c', userMessage }, bus))
  .then(() => console.log(kinds.join(' ')), async (error) => {
    console.log('Error: ' + error.message);
    console.log(JSON.stringify(await loadFaultOf(error, folder)));
  });
`;
const SOURCES = [
  'load-executor.ts',
  'load-error.ts',
  'load-fault.ts',
  'property.ts',
  'sdk-fallback.ts',
  'sdk-fallback-hooks.ts',
];
const ROOT = join(__dirname, '../../../../../..');

// Jest has a module system of its own, so these tests run the compiled files in a Node of their own.
let home: string;

beforeAll(async () => {
  home = await realpath(await mkdtemp(join(tmpdir(), 'baton-executors-')));
  await mkdir(join(home, 'platform/node_modules'), { recursive: true });
  for (const name of ['@a2a-js', 'tsx']) {
    await symlink(join(ROOT, 'node_modules', name), join(home, 'platform/node_modules', name));
  }
  await writeFile(join(home, 'package.json'), '{}');
  for (const name of SOURCES) await compile(name);
  await writeFile(join(home, 'platform/probe.js'), PROBE);
});

afterAll(() => rm(home, { recursive: true, force: true }));

async function compile(name: string): Promise<void> {
  const { outputText } = ts.transpileModule(await readFile(join(__dirname, name), 'utf8'), {
    fileName: name,
    compilerOptions: {
      module: ts.ModuleKind.NodeNext,
      target: ts.ScriptTarget.ES2023,
      esModuleInterop: true,
    },
  });
  await writeFile(join(home, 'platform', name.replace(/ts$/, 'js')), outputText);
}

/** An agent's folder with these files, outside of every `node_modules`. */
async function folder(name: string, files: Record<string, string>): Promise<string> {
  for (const [path, text] of Object.entries(files)) {
    const file = join(home, name, path);
    await mkdir(dirname(file), { recursive: true });
    await writeFile(file, text);
  }
  return join(home, name);
}

async function probe(path: string, module?: string): Promise<string> {
  const args = [join(home, 'platform/probe.js'), path, ...(module === undefined ? [] : [module])];
  const { stdout } = await promisify(execFile)(process.execPath, args, { env: {} });
  return stdout.trim();
}

const BODY = '{ execute(_, bus) { bus.publish(AgentEvent.message({})); } cancelTask() {} }';
const ESM = "import { AgentEvent } from '@a2a-js/sdk/server';\n";
const CJS = "const { AgentEvent } = require('@a2a-js/sdk/server');\n";

describe('an executor module without an SDK of its own', () => {
  it.each([
    ['an ES module with a class', 'index.mjs', `${ESM}export default class ${BODY}`],
    ['an ES module with an instance', 'index.mjs', `${ESM}export default new (class ${BODY})();`],
    [
      'TypeScript',
      'index.ts',
      `import { AgentEvent, type AgentExecutor } from '@a2a-js/sdk/server';
       const kinds: string[] = [];
       export default class implements AgentExecutor {
         async execute(_: unknown, bus: { publish(event: unknown): void }) { bus.publish(AgentEvent.message({} as any)); }
         async cancelTask() {}
       }`,
    ],
    ['a CommonJS module', 'index.cjs', `${CJS}module.exports = class ${BODY};`],
    [
      'CommonJS compiled from TypeScript',
      'index.js',
      `${CJS}Object.defineProperty(exports, '__esModule', { value: true });exports.default = class ${BODY};`,
    ],
    [
      'an older kind of class',
      'index.cjs',
      `${CJS}function Old() {}
       Old.prototype.execute = async (_, bus) => bus.publish(AgentEvent.message({}));
       Old.prototype.cancelTask = async () => {};
       module.exports = Old;`,
    ],
  ])('runs as %s', async (name, file, text) => {
    const path = await folder(name.replaceAll(' ', '-'), { [file]: text });
    expect(await probe(path)).toBe('message');
  });

  it('may be any file of the folder, with modules beside it', async () => {
    const path = await folder('nested', {
      'dist/main.mjs': "import Executor from './executor.mjs';\nexport default Executor;",
      'dist/executor.mjs': `${ESM}export default class ${BODY}`,
    });
    expect(await probe(path, 'dist/main.mjs')).toBe('message');
  });

  it('uses the SDK of its folder where there is one', async () => {
    const own = 'export const AgentEvent = { message: () => ({ kind: "own" }) };';
    const path = await folder('own-sdk', {
      'index.mjs': `${ESM}export default class ${BODY}`,
      'node_modules/@a2a-js/sdk/package.json': '{"type":"module","exports":{"./server":"./server.js"}}',
      'node_modules/@a2a-js/sdk/server.js': own,
    });
    expect(await probe(path)).toBe('own');
  });

  it.each(['countdown', 'trip-planner', 'greeter'])('runs the example %s', async (name) => {
    await cp(join(ROOT, 'examples/agents', name), join(home, name), { recursive: true });
    expect(await probe(join(home, name))).toMatch(/^(message|task .*statusUpdate)$/);
  });
});

describe('an executor module that cannot be used', () => {
  it.each([
    ['is not there', {}, ': has no module index.js, index.mjs, index.cjs, index.ts'],
    ['is TypeScript with a mistake', { 'index.ts': '\n\nconst a = {{;' }, '/index.ts:3)'],
    ['throws, with its line', { 'index.mjs': '\nundefined.boom();' }, '/index.mjs:2)'],
    ['exports nothing', { 'index.mjs': 'export const a = 1;' }, '/index.mjs: has no default export'],
    [
      'has no execute',
      { 'index.mjs': 'export default {};' },
      '/index.mjs: its default export has no execute()',
    ],
    [
      'has no cancelTask',
      { 'index.cjs': 'module.exports = class { execute() {} };' },
      '/index.cjs: its default export has no cancelTask()',
    ],
    ['throws', { 'index.mjs': 'throw new Error("boom");' }, '/index.mjs: could not be loaded: boom'],
    ['is not JavaScript', { 'index.mjs': 'export {{' }, '/index.mjs: could not be loaded: Unexpected token'],
    ['is no ES module, with its line', { 'index.mjs': '\n\nconst a = {{;' }, '/index.mjs:3)'],
    ['is no CommonJS module, with its line', { 'index.cjs': '\nconst a = {{;' }, '/index.cjs:2)'],
    [
      'imports what is not there, with its line',
      { 'index.mjs': "\nimport { a } from 'node:fs';" },
      '/index.mjs:2)',
    ],
    [
      'lacks a package',
      { 'index.mjs': "import 'no-such-package';" },
      "could not be loaded: Cannot find package 'no-such-package'",
    ],
    [
      'asks the SDK for what it does not have',
      { 'index.cjs': "require('@a2a-js/sdk/no-such-part');" },
      "could not be loaded: Cannot find module '@a2a-js/sdk/no-such-part'",
    ],
  ])('is named when it %s', async (name, files, reason) => {
    const path = await folder(name.replaceAll(' ', '-'), { 'README.md': '', ...files });
    const said = await probe(path);
    expect(said).toContain(`Error: ${path}`);
    expect(said).toContain(reason);
  });

  it.each<[string, Record<string, string>, object]>([
    ['no module', {}, { file: '', reason: expect.stringMatching(/^has no module index\.js/) as string }],
    [
      'no export',
      { 'index.mjs': '' },
      { file: 'index.mjs', reason: expect.stringMatching(/^has no default/) as string },
    ],
    [
      'a fault of syntax',
      { 'index.mjs': '\n\nconst a = {{;' },
      { file: 'index.mjs', line: 3, reason: expect.stringMatching(/^could not be loaded: Unex/) as string },
    ],
    [
      'an error in a module that it imports',
      { 'index.mjs': "import './lib/a.mjs';", 'lib/a.mjs': '\nthrow new TypeError("boom");' },
      { file: 'lib/a.mjs', line: 2, reason: 'could not be loaded: boom' },
    ],
    [
      'an error in a constructor',
      { 'index.cjs': 'module.exports = class {\n  constructor() {\n    throw new Error("no key");\n  }\n};' },
      { file: 'index.cjs', line: 3, reason: 'no key' },
    ],
    [
      'a value that is no error',
      { 'index.mjs': 'throw null;' },
      { file: 'index.mjs', reason: 'could not be loaded: null' },
    ],
  ])('is named with file, line and reason: %s', async (name, files, fault) => {
    const path = await folder(`fault-${name.replaceAll(' ', '-')}`, { 'README.md': '', ...files });
    const [, said] = (await probe(path)).split('\n');
    expect(JSON.parse(said ?? '')).toEqual(fault);
  });
});
