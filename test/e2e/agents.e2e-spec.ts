import { mkdtempSync, readFileSync, rmSync, watch, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DRIVERS } from '../support/index.js';
import { type Frame, RawCaller, sendParams } from '../support/raw-caller.js';
import { Stack } from '../support/stack.js';

const AGENTS = join(__dirname, '../agents');
const EXAMPLES = join(__dirname, '../../examples/agents');
const LEASES = { LEASE_MS: '1000', LEASE_HEARTBEAT_MS: '300', SWEEP_MS: '200' };

describe('an unchanged AgentExecutor', () => {
  let stack: Stack;
  let token: string;

  beforeAll(async () => {
    stack = await Stack.start({ driver: 'postgres', workers: 1, env: { BATON_AGENTS_DIR: EXAMPLES } });
    ({ token } = await stack.createTenant());
  });
  afterAll(() => stack.stop());
  const callerOf = (agent: string): RawCaller => new RawCaller(stack.url(0, agent), token);

  it('may answer with a bare message', async () => {
    const { result } = await callerOf('greeter').call('SendMessage', sendParams('I am Ada'));
    expect(result?.message).toMatchObject({ role: 'ROLE_AGENT' });
    const stored = await callerOf('greeter').call('GetTask', { id: result?.message.taskId });
    expect(stored.result?.status.state).toBe('TASK_STATE_COMPLETED');
  });

  it('is continued by another worker when its caller answers', async () => {
    const planner = callerOf('trip-planner');
    let task = (await planner.call('SendMessage', sendParams('Plan a trip'))).result!.task;
    for (const answer of ['Lisbon', '3']) {
      expect(task.status.state).toBe('TASK_STATE_INPUT_REQUIRED');
      const [previous] = stack.workers.splice(0);
      await previous?.kill();
      await stack.addWorker();
      task = (await planner.call('SendMessage', sendParams(answer, { taskId: task.id }))).result!.task;
    }
    expect(task.status.state).toBe('TASK_STATE_COMPLETED');
    expect(JSON.stringify(task.artifacts)).toContain('Lisbon');
    expect(task.history.length).toBeGreaterThanOrEqual(5);
  });

  it('streams, and its card says what it can', async () => {
    const frames: Frame[] = [];
    const stream = callerOf('countdown').stream('SendStreamingMessage', sendParams('3'));
    for await (const frame of stream) frames.push(frame);
    expect(frames.at(-1)?.data.result?.statusUpdate.status.state).toBe('TASK_STATE_COMPLETED');
    const card = await fetch(`${stack.url(0, 'countdown')}/.well-known/agent-card.json`, {
      headers: { authorization: `Bearer ${token}` },
    });
    expect(await card.json()).toMatchObject({ name: 'Countdown', skills: [{ id: 'countdown' }] });
  });
});

describe.each(DRIVERS)('cancel on %s', (driver) => {
  const folder = mkdtempSync(join(tmpdir(), 'baton-witness-'));
  const WITNESS_FILE = join(folder, 'canceled');
  let stack: Stack;
  let caller: RawCaller;

  beforeAll(async () => {
    writeFileSync(WITNESS_FILE, '');
    const env = { BATON_AGENTS_DIR: AGENTS, WITNESS_FILE };
    stack = await Stack.start({ driver, apis: 2, workers: 2, env });
    const { token } = await stack.createTenant();
    caller = new RawCaller(stack.url(0, 'witness'), token);
  });
  afterAll(async () => {
    await stack.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  it('reaches the agent from another API, ends the stream, and lets nothing follow', async () => {
    const other = caller.at(stack.url(1, 'witness'));
    const frames: Frame[] = [];
    let id = '';
    for await (const frame of caller.stream('SendStreamingMessage', sendParams('go'))) {
      frames.push(frame);
      id ||= frame.data.result?.task?.id as string;
      // The agent's own word: it runs. Before that there is nothing to stop.
      if (frames.length === 3) expect((await other.call('CancelTask', { id })).error).toBeUndefined();
    }
    expect(frames.at(-1)?.data.result?.statusUpdate.status.state).toBe('TASK_STATE_CANCELED');
    await written(WITNESS_FILE, id);
    expect(readFileSync(WITNESS_FILE, 'utf8')).toBe(`${id}\n`);
    const replay: Frame[] = [];
    for await (const frame of other.stream('SubscribeToTask', { id }, 0)) replay.push(frame);
    expect(replay.map((frame) => frame.id)).toEqual(frames.map((frame) => frame.id));
    expect((await other.call('CancelTask', { id })).error?.code).toBe(-32002);
  });
});

describe('a run that kills its worker again and again', () => {
  let stack: Stack;
  beforeAll(async () => {
    stack = await Stack.start({
      driver: 'postgres',
      workers: 4,
      env: { BATON_AGENTS_DIR: AGENTS, ...LEASES },
    });
  });
  afterAll(() => stack.stop());

  it('ends failed, with the reason, after its attempts', async () => {
    const { token } = await stack.createTenant();
    const caller = new RawCaller(stack.url(0, 'poison'), token);
    const { result } = await caller.call('SendMessage', sendParams('die'));
    expect(result?.task.status.state).toBe('TASK_STATE_FAILED');
    expect(JSON.stringify(result?.task.status.message)).toMatch(/attempt/);
    const echo = new RawCaller(stack.url(0), token);
    expect((await echo.call('SendMessage', sendParams('alive'))).result?.task.status.state).toBe(
      'TASK_STATE_COMPLETED',
    );
  });
});

/** Resolves when the file holds the word. */
function written(file: string, word: string): Promise<void> {
  return new Promise((resolve) => {
    const check = (): void => {
      if (!readFileSync(file, 'utf8').includes(word)) return;
      watcher.close();
      resolve();
    };
    const watcher = watch(file, check);
    check();
  });
}
