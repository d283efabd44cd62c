import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { CRASH_SETTINGS } from '../support/crash-settings.js';
import { PATIENT, startMcpServer, type TestMcpServer } from '../support/mcp-server/mcp-server.js';
import { textTool } from '../support/mcp-server/script.js';
import { ModelProvider } from '../support/model-provider/model-provider.js';
import { childrenOf } from '../support/local-run.js';
import { DRIVER, NIGHTLY, nightlyIt } from '../support/nightly.js';
import { RawCaller, sendParams } from '../support/raw-caller.js';
import { shareStack } from '../support/shared-stack.js';
import type { Stack, TestTenant } from '../support/stack.js';
import { until } from '../support/until.js';

/* oxlint-disable typescript/no-explicit-any -- tests look at the wire */

/** Asks between two steps. It says its version, and the words of a file beside it. */
const codeOf = (version: string): string => `
import { defineAgent } from '@baton/agent';
import { readFileSync } from 'node:fs';
import { greeting } from './lib/greeting.mjs';

const words = readFileSync(new URL('words.txt', import.meta.url), 'utf8');
export default defineAgent(async ({ step, ask }) => {
  const first = await step('first of ${version}', () => greeting + ' ${version}');
  const answer = await ask('more', 'More?');
  const last = await step('last of ${version}', () => words + ' ${version}');
  return [first, answer, last].join(', ');
});
`;

const startStack = shareStack(
  DRIVER,
  { ...CRASH_SETTINGS, OUTBOUND_ALLOW: '127.0.0.1' },
  {
    installAgents: (agents, writable) => {
      folder = join(writable, 'pinned');
      overwrite(agents, '1.0.0');
    },
  },
);
let folder: string;
let stack: Stack;
let tenant: TestTenant;
let provider: ModelProvider;
let server: TestMcpServer;

/** Writes the agents of a worker in a folder of its own. That of the other subjects has version 1.0.0. */
function deploy(version: string, policy = 'pinned'): string {
  const agents = join(folder, version);
  overwrite(agents, version, policy);
  return agents;
}

function overwrite(agents: string, version: string, policy = 'pinned'): void {
  mkdirSync(join(agents, 'keeper/lib'), { recursive: true });
  writeFileSync(join(agents, 'keeper/index.mjs'), codeOf(version));
  writeFileSync(join(agents, 'keeper/words.txt'), `words of ${version}`);
  writeFileSync(join(agents, 'keeper/lib/greeting.mjs'), `export const greeting = 'hello of ${version}';\n`);
  const yaml = `name: Keeper\ndescription: Keeps.\nversion: ${version}\nruntime: executor\nversions: ${policy}\n`;
  writeFileSync(join(agents, 'keeper/agent.yaml'), yaml);
}

/** Ends the processes of agents of a worker. */
function endAgents(worker: number): void {
  for (const { pid, command } of childrenOf(worker)) {
    if (command.includes('executor-main')) process.kill(pid, 'SIGKILL');
  }
}

/** In place of all workers, one with other code, without the code before. The kept code is unpacked below the folder for temporary files. */
const deployWorker = (agents: string): Promise<void> =>
  stack.replaceWorkers({ BATON_AGENTS_DIR: agents, TMPDIR: folder });

describe('a task of an agent that pins its tasks', () => {
  beforeAll(async () => {
    [stack, provider, server] = await Promise.all([
      startStack(),
      ModelProvider.start(),
      startMcpServer({ tools: [textTool('pay', 'paid')] }),
    ]);
    tenant = await stack.createTenant('admin');
  });
  afterAll(async () => {
    await Promise.all([provider.stop(), server.stop()]);
    if (NIGHTLY) await stack.replaceWorkers();
  });

  it('goes on with the code with which it began, in a worker that has never had it; a new task runs the new code', async () => {
    const asked = await send('keeper', 'go');
    await deployWorker(deploy('2.0.0'));
    const done = await send('keeper', 'old', asked.id as string);
    expect(saidIn(done)).toBe('hello of 1.0.0 1.0.0, old, words of 1.0.0 1.0.0');
    const next = await send('keeper', 'go');
    await send('keeper', 'go');
    expect(await stack.baton('agents', 'open', 'keeper', ...stack.cliOptions(tenant.token))).toMatch(
      /^[0-9a-f]{16} +yes +2 /m,
    );
    // The worker of the other subjects, with version 1.0.0.
    await stack.replaceWorkers({ TMPDIR: folder });
    const { versions, pinned } = await ask('/v1/agents/keeper/open-versions');
    expect(pinned).toBe(true);
    const hash = expect.stringMatching(/^[0-9a-f]{16}$/) as string;
    expect(versions).toMatchObject([{ version: null, code: hash, current: false, open_tasks: 2 }]);
    expect(saidIn(await send('keeper', 'new', next.id as string))).toBe(
      'hello of 2.0.0 2.0.0, new, words of 2.0.0 2.0.0',
    );
  });

  nightlyIt('parks as before once the agent no longer pins its tasks', async () => {
    await deployWorker(deploy('2.0.0'));
    const asked = await send('keeper', 'go');
    await deployWorker(deploy('3.0.0', 'latest'));
    await new RawCaller(stack.url(0, 'keeper'), tenant.token).call('SendMessage', {
      ...sendParams('old', { taskId: asked.id as string }),
      configuration: { returnImmediately: true },
    });
    const { parked } = await untilParked(asked.id as string);
    expect(parked.problem).toContain('first of 3.0.0');
    // It pins again: the task continues by itself, with its own code.
    await deployWorker(deploy('2.0.0'));
    expect(saidIn(await ended(asked.id as string))).toBe('hello of 2.0.0 2.0.0, old, words of 2.0.0 2.0.0');
  });

  nightlyIt(
    'goes on with its code when files are overwritten below the running worker; a new task runs the new files',
    async () => {
      await deployWorker(deploy('4.0.0'));
      const asked = await send('keeper', 'go');
      overwrite(join(folder, '4.0.0'), '4.1.0');
      endAgents(stack.workers[0]!.pid);
      // At once: the worker does not know of the new files yet.
      expect(saidIn(await send('keeper', 'old', asked.id as string))).toBe(
        'hello of 4.0.0 4.0.0, old, words of 4.0.0 4.0.0',
      );
      const before = await send('keeper', 'go');
      await untilVersion('4.1.0');
      const after = await send('keeper', 'go');
      expect(saidIn(await send('keeper', 'new', after.id as string))).toBe(
        'hello of 4.1.0 4.1.0, new, words of 4.1.0 4.1.0',
      );
      const next = await send('keeper', 'go');
      const { versions } = await ask('/v1/agents/keeper/open-versions');
      expect(versions.slice(-2)).toMatchObject([
        { current: false, open_tasks: 1 },
        { current: true, open_tasks: 1 },
      ]);
      await deployWorker(join(folder, '4.0.0'));
      expect(saidIn(await send('keeper', 'old', before.id as string))).toContain('hello of 4.0.0 4.0.0');
      expect(saidIn(await send('keeper', 'new', next.id as string))).toContain('hello of 4.1.0 4.1.0');
    },
  );

  nightlyIt('goes on with the prompt with which it began, unless that version was erased', async () => {
    const system = (): string[] => provider.requests.map(({ body }) => body.messages[0].content);
    const write = (prompt: string) =>
      put('clerk', {
        name: 'clerk',
        description: 'Pays.',
        runtime: 'llm',
        versions: 'pinned',
        config: {
          model: 'openai-compatible/clerk-1',
          baseUrl: provider.url,
          prompt,
          tools: { mcp: [{ ...PATIENT, name: 'desk', url: server.url, approval: ['pay'] }] },
        },
      });
    await write('You are the first.');
    const pay = () => provider.reply({ calls: [{ name: 'desk_pay', input: {} }] });
    pay();
    const asked = await send('clerk', 'Pay.');
    pay();
    const other = await send('clerk', 'Pay, too.');
    await write('You are the second.');
    provider.reset();
    provider.reply({ text: 'It is paid.' });
    expect((await send('clerk', 'yes', asked.id as string)).status.state).toBe('TASK_STATE_COMPLETED');
    expect(system()).toEqual(['You are the first.']);
    provider.reset();
    provider.reply({ text: 'Hello.' });
    await send('clerk', 'Hello?');
    expect(system()).toEqual(['You are the second.']);
    await stack.baton('agents', 'erase', 'clerk', '1', ...stack.cliOptions(tenant.token));
    provider.reset();
    provider.reply({ text: 'It is paid.' });
    await send('clerk', 'yes', other.id as string);
    expect(system()).toEqual(['You are the second.']);
  });
});

async function send(agent: string, text: string, taskId?: string): Promise<any> {
  const caller = new RawCaller(stack.url(0, agent), tenant.token);
  const params = sendParams(text, taskId === undefined ? {} : { taskId });
  const { result, error } = await caller.call('SendMessage', params);
  return result?.task ?? (await ask(`/v1/tasks/${(error!.data as any)[0].metadata.taskId as string}`)).task;
}

const ask = (path: string): Promise<any> => stack.rest(tenant.token).get(path);

const put = (slug: string, definition: object): Promise<unknown> =>
  stack.rest(tenant.token).write('PUT', `/v1/agents/${slug}`, definition);

/** Until the worker has found the new files. */
async function untilVersion(version: string): Promise<void> {
  await until(async () => (await ask('/v1/agents/keeper')).definition.version === version);
}

async function untilParked(id: string): Promise<any> {
  return until(async () => {
    const task = await ask(`/v1/tasks/${id}`);
    if (task.parked) return task;
    if (task.state !== 'working' && task.state !== 'submitted') throw new Error(JSON.stringify(task));
    return undefined;
  });
}

const ended = (id: string): Promise<any> => stack.rest(tenant.token).endedTask(id);

const saidIn = ({ status }: any): string => status.message.parts[0].text;
