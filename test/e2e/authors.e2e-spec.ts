import { execFile } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { waitUntil } from '../../apps/local/src/services/service-process.js';
import { createDatabase, type TestDatabase } from '../support/index.js';
import { childrenOf, LocalRun, temporaryHome } from '../support/local-run.js';
import { NIGHTLY } from '../support/nightly.js';
import { RawCaller, sendParams } from '../support/raw-caller.js';

const ROOT = join(__dirname, '../..');
const run = promisify(execFile);

/** Waits for a file if its message is `wait`. Its answer names its version. */
const agentOf = (version: string, gate: string): string => `
import { Role } from '@a2a-js/sdk';
import { AgentEvent, type AgentExecutor, type ExecutionEventBus, type RequestContext } from '@a2a-js/sdk/server';
import { existsSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';

const version: string = ${JSON.stringify(version)};

export default class implements AgentExecutor {
  async execute({ contextId, taskId, userMessage }: RequestContext, bus: ExecutionEventBus): Promise<void> {
    const asked = userMessage.parts[0]?.content?.value;
    console.log('asked:', asked);
    if (asked === 'wait') {
      bus.publish(AgentEvent.statusUpdate({ taskId, contextId, status: { state: 2, message: undefined, timestamp: undefined }, metadata: undefined }));
      while (!existsSync(${JSON.stringify(gate)})) await delay(20);
    }
    if (asked === 'throw') throw new Error('thrown on purpose');
    bus.publish(AgentEvent.artifactUpdate({ taskId, contextId, append: false, lastChunk: true, metadata: undefined,
      artifact: { artifactId: 'answer', name: '', description: '', extensions: [], metadata: undefined,
        parts: [{ content: { $case: 'text', value: version }, filename: '', mediaType: '', metadata: undefined }] } }));
    bus.publish(AgentEvent.statusUpdate({ taskId, contextId, status: { state: 3, message: undefined, timestamp: undefined }, metadata: undefined }));
  }
  async cancelTask(): Promise<void> {}
}
`;

/** Waits for a database that does not answer. */
const ENDLESS = 'await new Promise((resolve) => setTimeout(resolve, 1e9));\nexport default {};\n';
const TOO_LONG = "The agent's module has not finished loading after 15 s";

const linuxIt = process.platform === 'linux' ? it : it.skip;

describe("the author's loop", () => {
  const home = temporaryHome();
  const folder = mkdtempSync(join(tmpdir(), 'baton-authors-'));
  const agents = join(folder, 'agents');
  const gate = join(folder, 'gate');
  const written = join(folder, 'written');
  const module = join(agents, 'hello/index.ts');
  let database: TestDatabase;
  let local: LocalRun;
  let caller: RawCaller;
  let demo: { url: string; token: string };

  beforeAll(async () => {
    // What `npm install` would put there.
    for (const name of [
      'tsx',
      'esbuild',
      '@esbuild',
      'typescript',
      '@types',
      '@a2a-js',
      '@bufbuild',
      'jose',
      'oxlint',
      '@oxlint',
      '.bin',
    ]) {
      link(join(ROOT, 'node_modules', name), join(folder, 'node_modules', name));
    }
    link(join(ROOT, 'libs/agents/src/author'), join(folder, 'node_modules/@baton/agent'));
    await run(process.execPath, [join(ROOT, 'bin/create-baton-agent/index.mjs'), join(agents, 'hello')]);
    mkdirSync(written);
    mkdirSync(join(agents, 'endless'));
    writeFileSync(
      join(agents, 'endless/agent.yaml'),
      'name: Endless\ndescription: Never loads.\nruntime: executor\n',
    );
    writeFileSync(join(agents, 'endless/index.mjs'), ENDLESS);
    database = await createDatabase();
    local = new LocalRun({
      // Its own Postgres would cost as much as the rest of its start. `local.e2e-spec` has that.
      DATABASE_URL: database.url,
      BATON_HOME: home.path,
      PORT: '0',
      BATON_AGENTS_DIR: agents,
      BATON_DEV: '1',
      EXECUTOR_LOAD_MS: '15000',
      EXECUTOR_WRITE: written,
    });
    await local.ready();
    demo = JSON.parse(readFileSync(join(home.path, 'demo.json'), 'utf8')) as typeof demo;
    caller = new RawCaller(`${demo.url}/agents/hello`, demo.token);
  });

  afterAll(async () => {
    local.signal('SIGTERM');
    await local.exited;
    await database.drop();
    home.remove();
    rmSync(folder, { recursive: true, force: true });
  });

  /** Saves the module, and resolves when `npm start` has printed it. */
  const save = async (text: string, line: string): Promise<void> => {
    const before = local.output.split(line).length;
    writeFileSync(module, text);
    await local.printed(line, before);
  };
  const ask = async (text: string): Promise<string> => {
    const { result } = await caller.call('SendMessage', sendParams(text));
    return JSON.stringify(result);
  };
  const LOADED = 'Agent hello is loaded again.';

  linuxIt('starts no Postgres of its own where DATABASE_URL names one', () => {
    expect(childrenOf(local.pid).filter(({ command }) => command.includes('postgres'))).toEqual([]);
    expect(existsSync(join(home.path, 'postgres'))).toBe(false);
    expect(local.output).toContain('Postgres: the one of DATABASE_URL.');
  });

  it.each(NIGHTLY ? ['typescript', 'javascript'] : ['typescript'])(
    'begins with a new agent in %s, whose test and lint pass also where Git ignores it',
    async (language) => {
      const name = join(agents, `../${language}`);
      const create = join(ROOT, 'bin/create-baton-agent/index.mjs');
      await run(process.execPath, [create, name, ...(language === 'javascript' ? ['--javascript'] : [])]);
      const { stdout } = await run('npm', ['test', '--silent'], { cwd: name });
      // The reporter of Node 23 and later writes another sign.
      expect(stdout).toMatch(/^[#ℹ] pass 1$/m);
      // As in `my-agents/` of a clone: a linter that looks for files itself finds none.
      mkdirSync(join(name, '.git'));
      writeFileSync(join(name, '.gitignore'), '*');
      await run('npm', ['run', 'lint', '--silent'], { cwd: name });
    },
  );

  it('names an agent whose module never finishes loading, and runs the others', async () => {
    await local.printed(`${join(agents, 'endless')}: could not be loaded: ${TOO_LONG}`);
    expect(await ask('Ada')).toContain('Hello, Ada!');
  });

  it('answers as the new agent, which runs as TypeScript', async () => {
    expect(await ask('Ada')).toContain('Hello, Ada!');
  });

  it('answers with the new code after a save, while a run in hand ends with the old code', async () => {
    await save(agentOf('first', gate), LOADED);
    expect(await ask('hi')).toContain('first');
    const frames = caller.stream('SendStreamingMessage', sendParams('wait'));
    await frames.next();
    await frames.next();
    await save(agentOf('second', gate), LOADED);
    expect(await ask('hi')).toContain('second');
    writeFileSync(gate, '');
    let rest = '';
    for await (const frame of frames) rest += JSON.stringify(frame.data);
    expect(rest).toContain('"first"');
    expect(rest).toContain('TASK_STATE_COMPLETED');
  });

  it('prints file and line of a mistake, and keeps the old code until it is corrected', async () => {
    await save('export default class {}\n\nconst broken = {{;\n', `${module}:3: could not be loaded`);
    await local.printed('Agent hello keeps the code before this change.');
    expect(await ask('hi')).toContain('second');
    await save(
      'const nothing: any = undefined;\n\nnothing.boom();\nexport default {};\n',
      `${module}:3: could not be loaded: Cannot read`,
    );
    expect(await ask('hi')).toContain('second');
    await save(agentOf('third', gate), LOADED);
    expect(await ask('hi')).toContain('third');
  });

  it('loads a mended module, although the one before never finishes loading', async () => {
    const begun = join(written, 'begun');
    const write = `import { writeFileSync } from 'node:fs';\nwriteFileSync(${JSON.stringify(begun)}, '');\n`;
    writeFileSync(module, write + ENDLESS);
    await waitUntil(() => Promise.resolve(existsSync(begun)), Infinity);
    await save(agentOf('third', gate), LOADED);
    expect(await ask('hi')).toContain('third');
    expect(local.output.split(TOO_LONG)).toHaveLength(2);
  });

  it('shows its author where in the TypeScript it has thrown', async () => {
    await ask('throw');
    const headers = { authorization: `Bearer ${demo.token}` };
    const list = await fetch(`${demo.url}/v1/tasks?state=failed`, { headers });
    const { tasks } = (await list.json()) as { tasks: { task_id: string }[] };
    const answer = await fetch(`${demo.url}/v1/tasks/${tasks[0]?.task_id}`, { headers });
    const { error } = (await answer.json()) as { error: { message: string; stack: string } };
    expect(error.message).toBe('thrown on purpose');
    const line =
      agentOf('third', gate)
        .split('\n')
        .findIndex((text) => text.includes('thrown on purpose')) + 1;
    expect(error.stack).toContain(`${module}:${line}:`);
    await local.printed(`hello: Error: thrown on purpose\n    at `);
    await local.printed('hello: asked: throw');
  });

  it('takes a new agent, and a changed agent.yaml', async () => {
    const line = 'Agent second is loaded again.';
    await run(process.execPath, [join(ROOT, 'bin/create-baton-agent/index.mjs'), join(agents, 'second')]);
    await local.printed(line);
    const file = join(agents, 'second/agent.yaml');
    writeFileSync(file, readFileSync(file, 'utf8').replace('Second', 'Renamed'));
    const card = `${demo.url}/agents/second/.well-known/agent-card.json`;
    const headers = { authorization: `Bearer ${demo.token}` };
    await waitUntil(
      async () => (await (await fetch(card, { headers })).text()).includes('"Renamed"'),
      Infinity,
    );
  });
});

function link(target: string, path: string): void {
  mkdirSync(dirname(path), { recursive: true });
  symlinkSync(target, path);
}
