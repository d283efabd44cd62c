import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { DRIVERS } from '../support/index.js';
import { CRASH_SETTINGS } from '../support/crash-settings.js';
import { isRunning } from '../support/local-run.js';
import { PATIENT } from '../support/mcp-server/mcp-server.js';
import { ModelProvider } from '../support/model-provider/model-provider.js';
import { RawCaller, sendParams } from '../support/raw-caller.js';
import { Stack, type TestTenant } from '../support/stack.js';

const STDIO_SERVER = join(__dirname, '../support/mcp-server/stdio-server.mjs');
const ENV = {
  ...CRASH_SETTINGS,
  OUTBOUND_ALLOW: '127.0.0.1',
  BATON_MASTER_KEY: Buffer.alloc(32, 7).toString('base64'),
  MCP_STDIO_ALLOW: `${process.execPath} ${STDIO_SERVER}`,
  MCP_KEPT_PROGRAMS_PER_TENANT: '2',
};
const LOST = 'has just been started. What it held of earlier messages';

const folder = mkdtempSync(join(tmpdir(), 'baton-kept-'));
let stack: Stack;
let provider: ModelProvider;
let tenant: TestTenant;
let caller: RawCaller;
let contexts = 0;

beforeAll(async () => {
  [stack, provider] = await Promise.all([
    Stack.start({ driver: DRIVERS[0]!, workers: 1, env: ENV }),
    ModelProvider.start(),
  ]);
  tenant = await stack.createTenant();
  const program = { command: process.execPath, args: [STDIO_SERVER], keep: '1h', ...PATIENT };
  const file = join(folder, 'agent.json');
  const agent = {
    name: 'Browser',
    description: 'Remembers.',
    runtime: 'llm',
    config: {
      model: 'openai-compatible/clerk-1',
      baseUrl: provider.url,
      tools: { mcp: [{ name: 'tab', approval: ['arguments'], ...program }] },
    },
  };
  writeFileSync(file, JSON.stringify(agent));
  await stack.baton('agents', 'create', '--tenant', tenant.slug, '--file', file, '--slug', 'browser');
  caller = new RawCaller(stack.url(0, 'browser'), tenant.token);
});

afterAll(async () => {
  await Promise.all([stack.stop(), provider.stop()]);
  rmSync(folder, { recursive: true, force: true });
});

beforeEach(() => provider.reset());

const newContext = (): string => `context-${++contexts}`;

/** What the program of a task has said: how often it was called, and its process. */
async function count(contextId: string, as = caller): Promise<{ count: number; pid: number }> {
  provider.reply({ calls: [{ name: 'tab_count', input: {} }] }, { text: 'counted' });
  const { task } = (await as.call('SendMessage', sendParams('Count', { contextId }))).result!;
  expect(task.status.state).toBe('TASK_STATE_COMPLETED');
  return outputOf(task) as { count: number; pid: number };
}

// oxlint-disable-next-line typescript/no-explicit-any -- tests look at the wire
function outputOf(task: any): unknown {
  const calls = task.artifacts.filter(({ metadata }: { metadata?: object }) => metadata);
  return JSON.parse(calls.at(-1).parts[0].data.output);
}

async function untilGone(pid: number): Promise<void> {
  while (isRunning(pid)) await setTimeout(50);
}

it('a program keeps its state for the next task of its context, and for none of another context or caller', async () => {
  const contextId = newContext();
  const first = await count(contextId);
  expect(await count(contextId)).toEqual({ count: 2, pid: first.pid });
  expect((await count(newContext())).count).toBe(1);
  const other = new RawCaller(caller.url, await stack.createToken(tenant.slug, 'agents:call'));
  expect((await count(contextId, other)).count).toBe(1);
  // The tenant may have two: that of the first context has waited longest.
  await untilGone(first.pid);
  expect((await count(contextId)).count).toBe(1);
});

it('a program lives on while its task waits for an approval', async () => {
  const contextId = newContext();
  const { pid } = await count(contextId);
  provider.reply(
    { calls: [{ name: 'tab_arguments', input: {} }] },
    { calls: [{ name: 'tab_count', input: {} }] },
    { text: 'done' },
  );
  const asked = (await caller.call('SendMessage', sendParams('Go on', { contextId }))).result!.task;
  expect(asked.status.state).toBe('TASK_STATE_INPUT_REQUIRED');
  expect(isRunning(pid)).toBe(true);
  const { task } = (await caller.call('SendMessage', sendParams('yes', { taskId: asked.id }))).result!;
  expect(outputOf(task)).toEqual({ count: 2, pid });
});

it('a program ends with a killed worker, and the model reads that its state is gone', async () => {
  const contextId = newContext();
  const { pid } = await count(contextId);
  expect(JSON.stringify(provider.requests)).not.toContain(LOST);
  await stack.killWorkers();
  await untilGone(pid);
  await stack.addWorker();
  expect((await count(contextId)).count).toBe(1);
  expect(JSON.stringify(provider.requests.slice(2))).toContain(LOST);
  expect((await count(contextId)).count).toBe(2);
});

it('a program ends with a worker that stops', async () => {
  const { pid } = await count(newContext());
  expect(await stack.workers[0]!.stop()).toBe(0);
  await untilGone(pid);
});
