import { type Agent, type Message, TaskState } from '@baton/a2a';
import { Database, type RunQuota, RunStore, TaskStore } from '@baton/database';
import type { RunJob } from '@baton/messaging';
import { Tracing } from '@baton/telemetry';
import { randomUUID } from 'node:crypto';
import { createDatabase, type TestDatabase } from '../../../../test/support/index.js';
import { TurnAcceptance } from './turn-acceptance.js';
import { newTask } from './new-task.js';
import { userMessage } from '../../../../test/support/agents/turns.js';
import type { EagerClaim } from '../eager-start/eager-start.js';

const ECHO = { id: 'echo', slug: 'echo', definition: {} } as Agent;

let testDatabase: TestDatabase;
let database: Database;
let tasks: TaskStore;
let runs: RunStore;
let tenantId: string;
let quota: RunQuota;
const NO_QUOTA: RunQuota = { maxInFlight: null, maxWaiting: null, exact: false };
let onQueue: RunJob[];
let acceptance: TurnAcceptance;

beforeAll(async () => {
  testDatabase = await createDatabase();
  database = new Database({ url: testDatabase.url, poolSize: 8 });
  tasks = new TaskStore(database);
  runs = new RunStore(database);
});
afterAll(async () => {
  await database.close();
  await testDatabase.drop();
});
beforeEach(() => {
  tenantId = randomUUID();
  quota = NO_QUOTA;
  onQueue = [];
  const slots = {
    quotaFor: async () => quota,
    enqueue: async (run: RunJob, dispatched: boolean) => void (dispatched && onQueue.push(run)),
  };
  const eager = {
    claimFor: () => undefined,
    send: async () => undefined,
  };
  acceptance = new TurnAcceptance(tasks, slots, eager, { maxAttempts: 3 }, new Tracing());
});

const said = (text: string): Message => userMessage(text, { messageId: '', contextId: '', taskId: '' });
const request = (id?: string) => ({ tenantId, agent: ECHO, task: newTask(said('hello'), { id }) });
const keyOf = (text: string) => ({ hash: Buffer.alloc(32, text), content: null, hours: 1 });
const runsOf = async (taskId: string): Promise<{ id: string; state: string }[]> => {
  const text = `SELECT id, state FROM runs WHERE tenant_id = '${tenantId}' AND task_id = '${taskId}'`;
  return database.systemQuery({ text }, []);
};
/** The task as it waits for its caller: its run has asked for input. */
async function interrupted(): Promise<string> {
  const { task } = request();
  await acceptance.createTask({ tenantId, agent: ECHO, task });
  const [{ runId } = { runId: '' }] = onQueue.splice(0);
  const run = (await runs.claim(tenantId, runId, 'worker', 60_000, false))!;
  const status = { state: TaskState.TASK_STATE_INPUT_REQUIRED, message: undefined, timestamp: undefined };
  const value = { taskId: task.id, contextId: task.contextId, status, metadata: undefined };
  const payload = { $case: 'statusUpdate' as const, value };
  const { serializePayload } = await import('@baton/a2a');
  const end = { state: status.state, outcome: null, artifacts: [] };
  const events = [{ payload, json: serializePayload(payload), isFirst: false }];
  expect(await runs.append(run, { afterSequence: run.snapshot.sequence, events, end })).toMatchObject({
    ok: true,
  });
  return task.id;
}

describe('a new task', () => {
  it('is in Postgres before its run is on the queue, and its caller watches it by then', async () => {
    const { task } = request();
    const steps: string[] = [];
    let subscribe: () => void = () => undefined;
    const isWatched = new Promise<void>((resolve) => (subscribe = resolve));
    const made = acceptance.createTask({ tenantId, agent: ECHO, task }, async () => {
      await isWatched;
      steps.push(`watched with ${onQueue.length} runs on the queue`);
      return 'watch';
    });
    while ((await runsOf(task.id)).length === 0);
    subscribe();
    expect(await made).toEqual({ created: true, opened: 'watch' });
    expect(steps).toEqual(['watched with 0 runs on the queue']);
    const [run] = await runsOf(task.id);
    expect(run).toMatchObject({ state: 'queued' });
    expect(onQueue).toEqual([
      { tenantId, taskId: task.id, runId: run?.id, attempt: 0, mayUseReserved: true },
    ]);
    expect((await tasks.get(tenantId, task.id))?.task.history).toMatchObject([{ taskId: task.id }]);
  });

  it('that waits for a slot is not put on the queue', async () => {
    quota = { maxInFlight: 0, maxWaiting: null, exact: true };
    const { task } = request();
    await acceptance.createTask({ tenantId, agent: ECHO, task });
    expect(await runsOf(task.id)).toMatchObject([{ state: 'queued' }]);
    expect(onQueue).toEqual([]);
  });

  it('is refused with the limit that has no room, and nothing is written', async () => {
    quota = { maxInFlight: 0, maxWaiting: 0, exact: true };
    const waiting = request();
    await expect(acceptance.createTask(waiting)).rejects.toMatchObject({
      kind: 'limit-exceeded',
      message: expect.stringContaining('tasksWaiting'),
    });
    quota = { maxInFlight: null, maxWaiting: null, maxStoredBytes: 1, exact: false };
    await expect(acceptance.createTask(waiting)).rejects.toMatchObject({
      kind: 'limit-exceeded',
      message: expect.stringContaining('storedBytes'),
    });
    expect(await tasks.get(tenantId, waiting.task.id)).toBeUndefined();
    expect(onQueue).toEqual([]);
  });

  it('under a key that is known is not made: the caller learns of the earlier one', async () => {
    const key = keyOf('k');
    const first = request();
    await acceptance.createTask({ ...first, key });
    const second = await acceptance.createTask({ ...request(), key });
    expect(second).toMatchObject({ created: false, earlier: { taskId: first.task.id } });
    expect(onQueue.map(({ taskId }) => taskId)).toEqual([first.task.id]);
  });

  it('that several make under one id is made once', async () => {
    const id = randomUUID();
    const made = await Promise.all([1, 2, 3, 4].map(() => acceptance.ensureTask(request(id))));
    expect(made.filter(Boolean)).toHaveLength(1);
    expect(await acceptance.ensureTask(request(id))).toBe(false);
    expect(await runsOf(id)).toHaveLength(1);
    expect(onQueue).toHaveLength(1);
  });

  it('that exists is not refused to a repeated create when the limits have no room', async () => {
    const id = randomUUID();
    await acceptance.ensureTask(request(id));
    quota = { maxInFlight: 0, maxWaiting: 0, exact: true };
    expect(await acceptance.ensureTask(request(id))).toBe(false);
    await expect(acceptance.ensureTask(request())).rejects.toMatchObject({ kind: 'limit-exceeded' });
  });
});

describe('a run that is claimed for a worker as it is made', () => {
  let sent: string[];
  beforeEach(() => {
    sent = [];
    const slots = {
      quotaFor: async () => quota,
      enqueue: async (run: RunJob, dispatched: boolean) => void (dispatched && onQueue.push(run)),
    };
    const eager = {
      claimFor: () => ({ workerId: 'worker', leaseMs: 60_000, startBefore: 0 }),
      send: async ({ runId }: RunJob, { workerId }: EagerClaim) => void sent.push(`${workerId} ${runId}`),
    };
    acceptance = new TurnAcceptance(tasks, slots, eager, { maxAttempts: 3 }, new Tracing());
  });

  it('is sent to the worker when its caller watches it, and is on no queue', async () => {
    const { task } = request();
    let watched = -1;
    await acceptance.createTask({ tenantId, agent: ECHO, task }, async () => {
      while ((await runsOf(task.id)).length === 0);
      watched = sent.length;
    });
    const [run] = await runsOf(task.id);
    expect(run).toMatchObject({ state: 'running' });
    expect([watched, sent, onQueue]).toEqual([0, [`worker ${run?.id}`], []]);
  });

  it('is not one that has to wait, and not one of a tenant without room', async () => {
    quota = { maxInFlight: 0, maxWaiting: null, exact: true };
    const { task } = request();
    await acceptance.createTask({ tenantId, agent: ECHO, task });
    expect(await runsOf(task.id)).toMatchObject([{ state: 'queued' }]);
    quota = { maxInFlight: null, maxWaiting: null, maxStoredBytes: 1, exact: false };
    await expect(acceptance.createTask(request())).rejects.toMatchObject({ kind: 'limit-exceeded' });
    expect([sent, onQueue]).toEqual([[], []]);
  });

  it.each([
    ['may be tried twice', { mode: 'restart', attempts: 2 }],
    ['may be tried once', { mode: 'none' }],
    [
      'is tried again after a pause',
      { mode: 'restart', backoff: { initialMs: 1_000, factor: 2, maxMs: 9_000 } },
    ],
  ])('is not one of an agent that %s: a lost message would cost an attempt', async (_, retry) => {
    const agent = { ...ECHO, definition: { retry } } as unknown as Agent;
    await acceptance.createTask({ ...request(), agent });
    expect([sent.length, onQueue.length]).toEqual([0, 1]);
  });

  it('whose message is known starts nothing: the caller learns of the earlier task', async () => {
    const key = keyOf('k');
    const first = request();
    await acceptance.createTask({ ...first, key });
    expect(await acceptance.createTask({ ...request(), key })).toMatchObject({
      created: false,
      earlier: { taskId: first.task.id },
    });
    expect([sent.length, onQueue.length]).toEqual([1, 0]);
    expect(await runsOf(first.task.id)).toHaveLength(1);
  });
});

describe('the next turn of a task', () => {
  const next = (taskId: string) => ({ tenantId, agent: ECHO, message: { ...said('go on'), taskId } });

  it('is in Postgres and watched before its run is on the queue', async () => {
    const taskId = await interrupted();
    const continued = await acceptance.continueTask(next(taskId), async (sequence) => ({
      sequence,
      runs: (await runsOf(taskId)).length,
      onQueue: onQueue.length,
    }));
    expect(continued).toEqual({ ok: true, opened: { sequence: 4, runs: 2, onQueue: 0 } });
    expect(onQueue).toHaveLength(1);
  });

  it('is refused while the task is at work, and repeated under a key that is known', async () => {
    const taskId = await interrupted();
    const key = keyOf(taskId);
    expect(await acceptance.continueTask({ ...next(taskId), key })).toMatchObject({ ok: true });
    expect(await acceptance.continueTask(next(taskId))).toEqual({ ok: false, reason: 'busy' });
    expect(await acceptance.continueTask({ ...next(taskId), key })).toMatchObject({ reason: 'repeated' });
    expect(await acceptance.continueTask(next(randomUUID()))).toEqual({ ok: false, reason: 'not-found' });
    expect(onQueue).toHaveLength(1);
  });

  it('is held to the limits of the tenant, unless they do not apply to it', async () => {
    const taskId = await interrupted();
    quota = { maxInFlight: 0, maxWaiting: 0, exact: true };
    await expect(acceptance.continueTask(next(taskId))).rejects.toMatchObject({ kind: 'limit-exceeded' });
    expect(await acceptance.continueTask({ ...next(taskId), isUnlimited: true })).toMatchObject({ ok: true });
  });
});
