import { LOG } from '../../../../test/support/log-sql.js';
import { TaskState } from '@baton/a2a';
import { createHash, randomUUID } from 'node:crypto';
import type { ClaimedRun, MessageKey, NewTask, NextTurn } from '../index.js';
import { type Stores, endTurn, newTask, openStores, sql, startTask, textMessage } from '../stores.fixture.js';

let stores: Stores;
beforeAll(async () => {
  stores = await openStores();
});
afterAll(async () => stores.close());

const hash = (text: string): Buffer => createHash('sha256').update(text).digest();
const keyOf = (text: string, more: Partial<MessageKey> = {}): MessageKey => ({
  hash: hash(text),
  content: null,
  hours: 24,
  ...more,
});
const keyed = (tenantId: string, key = keyOf('hello')): NewTask => ({ ...newTask({ tenantId }), key });

const WRITTEN = {
  tasks: 'tasks',
  runs: 'runs',
  events: `${LOG} e`,
  task_messages: 'task_messages',
  message_keys: 'message_keys',
};
/** How many rows the tenant has in each table, and how many events. */
const written = async (tenantId: string): Promise<Record<string, number>> => {
  const counts = Object.entries(WRITTEN).map(async ([name, table]) => {
    const rows = await sql(stores, `SELECT 1 FROM ${table} WHERE tenant_id = '${tenantId}'`);
    return [name, rows.length] as const;
  });
  return Object.fromEntries(await Promise.all(counts));
};
/** Of a message that has made no task. */
const NO_RUN = { dispatched: false, claimed: undefined, mayUseReserved: false };
const ONE = { tasks: 1, runs: 1, events: 1, task_messages: 1, message_keys: 1 };

/** As if the keys of the tenant had been written long ago. */
const expire = (tenantId: string) =>
  sql(
    stores,
    `UPDATE message_keys SET expires_at = now() - interval '1 second' WHERE tenant_id = '${tenantId}'`,
  );

describe('a message that comes again', () => {
  it('makes one task, however many come at once', async () => {
    const tenantId = randomUUID();
    const inputs = Array.from({ length: 50 }, () => keyed(tenantId));
    const results = await Promise.all(inputs.map((input) => stores.tasks.create(input)));
    const created = results.filter((result) => result.created);
    expect(created).toHaveLength(1);
    const taskId = created[0]?.taskId;
    expect(results.map((result) => result.taskId)).toEqual(Array(50).fill(taskId));
    expect(await written(tenantId)).toEqual(ONE);
    expect((await stores.tasks.get(tenantId, taskId ?? ''))?.sequence).toBe(1);
  });

  it('finds the task at work, and when it has ended', async () => {
    const tenantId = randomUUID();
    const run = await startTask(stores, keyed(tenantId));
    const again = { created: false, ...NO_RUN, taskId: run.taskId, content: null };
    expect(await stores.tasks.create(keyed(tenantId))).toEqual(again);
    await endTurn(stores, run, 2);
    expect(await stores.tasks.create(keyed(tenantId))).toEqual(again);
    expect(await written(tenantId)).toMatchObject({ tasks: 1, runs: 1 });
  });

  it('is a new one for another tenant and under another key', async () => {
    const [tenantId, other] = [randomUUID(), randomUUID()];
    for (const input of [keyed(tenantId), keyed(other), keyed(tenantId, keyOf('another'))]) {
      expect(await stores.tasks.create(input)).toEqual({
        created: true,
        dispatched: true,
        claimed: undefined,
        mayUseReserved: expect.any(Boolean) as boolean,
        taskId: input.task.id,
        content: null,
      });
    }
    expect(await written(tenantId)).toMatchObject({ tasks: 2, message_keys: 2 });
    expect(await written(other)).toEqual(ONE);
  });

  it('is a new one when its key has expired, and that is what the key names from then on', async () => {
    const tenantId = randomUUID();
    await stores.tasks.create(keyed(tenantId, keyOf('hello', { content: hash('first') })));
    await expire(tenantId);
    const second = keyOf('hello', { content: hash('second') });
    expect(await stores.tasks.earlierTurn(tenantId, second)).toBeUndefined();
    const inputs = Array.from({ length: 10 }, () => keyed(tenantId, second));
    const results = await Promise.all(inputs.map((input) => stores.tasks.create(input)));
    expect(results.filter((result) => result.created)).toHaveLength(1);
    expect(new Set(results.map(({ taskId }) => taskId)).size).toBe(1);
    expect(results.map(({ content }) => content)).toEqual(Array(10).fill(second.content));
    expect(await written(tenantId)).toMatchObject({ tasks: 2, message_keys: 1 });
  });

  it('expires after the hours it was given', async () => {
    const tenantId = randomUUID();
    await stores.tasks.create(keyed(tenantId, keyOf('hello', { hours: 48 })));
    const [row] = await sql(
      stores,
      `SELECT round(extract(epoch FROM expires_at - now()) / 3600)::int AS hours
       FROM message_keys WHERE tenant_id = '${tenantId}'`,
    );
    expect(row).toEqual({ hours: 48 });
  });

  it('is a new one if the task that its key names is gone, once', async () => {
    const tenantId = randomUUID();
    const { taskId: goneTaskId } = await stores.tasks.create(keyed(tenantId));
    const key = keyOf('hello', { goneTaskId });
    const inputs = Array.from({ length: 10 }, () => keyed(tenantId, key));
    const results = await Promise.all(inputs.map((input) => stores.tasks.create(input)));
    expect(results.filter((result) => result.created)).toHaveLength(1);
    expect(new Set(results.map(({ taskId }) => taskId)).size).toBe(1);
    expect(results[0]?.taskId).not.toBe(goneTaskId);
  });

  it('returns the first message of the key', async () => {
    const tenantId = randomUUID();
    const first = keyOf('header', { content: hash('first') });
    await stores.tasks.create(keyed(tenantId, first));
    const other = await stores.tasks.create(keyed(tenantId, { ...first, content: hash('other') }));
    expect(other).toMatchObject({ created: false, content: first.content });
  });

  it('under an id of its caller is one task by that id and by its key', async () => {
    const tenantId = randomUUID();
    const named = (clientId: string, key: MessageKey): NewTask => ({
      ...keyed(tenantId, key),
      alias: { profile: 'orloj', clientId },
    });
    const inputs = Array.from({ length: 20 }, () => named('job', keyOf('one')));
    const results = await Promise.all(inputs.map((input) => stores.tasks.create(input)));
    expect(results.filter(({ created }) => created)).toHaveLength(1);
    const taskId = results.find(({ created }) => created)?.taskId;
    expect(results.map((result) => result.taskId)).toEqual(Array(20).fill(taskId));
    expect(await written(tenantId)).toEqual(ONE);
    // The key is known: the other id names nothing.
    const again = { created: false, ...NO_RUN, taskId, content: null };
    expect(await stores.tasks.create(named('other job', keyOf('one')))).toEqual(again);
    const own = { owner: 'token:a', unowned: true };
    const other = { tenantId, profile: 'orloj', clientId: 'other job', own };
    expect(await stores.tasks.findAlias(other)).toBeUndefined();
    // The id is taken: the key names nothing yet, and continues as a new one.
    const two = keyOf('two');
    expect(await stores.tasks.create(named('job', two))).toEqual(again);
    const goneTaskId = (await stores.tasks.earlierTurn(tenantId, two))?.taskId;
    expect(await stores.tasks.get(tenantId, goneTaskId ?? '')).toBeUndefined();
    expect(await stores.tasks.earlierTurn(tenantId, { ...two, goneTaskId })).toBeUndefined();
    const next = named('job', { ...two, goneTaskId });
    next.alias = { profile: 'orloj', clientId: 'job', previousTaskId: taskId };
    expect(await stores.tasks.create(next)).toMatchObject({ created: true, taskId: next.task.id });
  });

  it('leaves no key if its task is refused', async () => {
    const tenantId = randomUUID();
    const [first, second] = [keyed(tenantId), keyed(tenantId, keyOf('another'))];
    await stores.tasks.create(first);
    await expect(stores.tasks.create({ ...second, runId: first.runId })).rejects.toThrow();
    expect(await written(tenantId)).toEqual(ONE);
    expect(await stores.tasks.create(second)).toMatchObject({ created: true });
  });
});

describe('a next turn that comes again', () => {
  const ASKS = TaskState.TASK_STATE_INPUT_REQUIRED;

  /** A task that waits for its caller, with a log of 3. */
  async function interrupted(): Promise<ClaimedRun> {
    const run = await startTask(stores);
    await endTurn(stores, run, 2, ASKS);
    return run;
  }
  const answer = ({ tenantId, taskId }: ClaimedRun, more: Partial<NextTurn> = {}): NextTurn => ({
    tenantId,
    taskId,
    agentId: 'echo',
    runId: randomUUID(),
    message: textMessage('yes'),
    extensions: [],
    key: keyOf('yes'),
    ...more,
  });

  it('is taken once, however many come at once', async () => {
    const run = await interrupted();
    const results = await Promise.all(Array.from({ length: 50 }, () => stores.tasks.continue(answer(run))));
    expect(results.filter(({ ok }) => ok)).toEqual([
      { ok: true, sequence: 4, dispatched: true, mayUseReserved: true },
    ]);
    const repeated = { ok: false, reason: 'repeated', earlier: { taskId: run.taskId, content: null } };
    expect(results.filter(({ ok }) => !ok)).toEqual(Array(49).fill(repeated));
    expect(await written(run.tenantId)).toEqual({
      tasks: 1,
      runs: 2,
      events: 4,
      task_messages: 2,
      message_keys: 1,
    });
  });

  it('is known when the task asks again, and when it has ended; another answer is not', async () => {
    const run = await interrupted();
    const first = answer(run);
    await stores.tasks.continue(first);
    const again = { ok: false, reason: 'repeated', earlier: { taskId: run.taskId, content: null } };
    const second = await stores.runs.claim(run.tenantId, first.runId, 'worker', 30_000);
    await endTurn(stores, second!, 5, ASKS);
    expect(await stores.tasks.continue(answer(run))).toEqual(again);
    const other = answer(run, { key: keyOf('no') });
    expect(await stores.tasks.continue(other)).toMatchObject({ ok: true, sequence: 7 });
    expect(await stores.tasks.continue(answer(run))).toEqual(again);
    const third = await stores.runs.claim(run.tenantId, other.runId, 'worker', 30_000);
    await endTurn(stores, third!, 8);
    expect(await stores.tasks.continue(answer(run))).toEqual(again);
    const late = answer(run, { key: keyOf('late') });
    expect(await stores.tasks.continue(late)).toEqual({ ok: false, reason: 'terminal' });
  });

  it('is refused as before while the task works on something else, and leaves no key', async () => {
    const run = await interrupted();
    await stores.tasks.continue(answer(run));
    const other = answer(run, { key: keyOf('no') });
    expect(await stores.tasks.continue(other)).toEqual({ ok: false, reason: 'busy' });
    expect(await stores.tasks.continue(answer(run, { taskId: randomUUID() }))).toEqual({
      ok: false,
      reason: 'not-found',
    });
    expect(await written(run.tenantId)).toMatchObject({ message_keys: 1 });
  });

  it('is a new turn when its key has expired, or names a task that is gone', async () => {
    const run = await interrupted();
    const { taskId: goneTaskId } = await stores.tasks.create(keyed(run.tenantId, keyOf('yes')));
    expect(await stores.tasks.continue(answer(run))).toMatchObject({
      reason: 'repeated',
      earlier: { taskId: goneTaskId },
    });
    const key = keyOf('yes', { goneTaskId });
    const first = answer(run, { key });
    expect(await stores.tasks.continue(first)).toMatchObject({ ok: true, sequence: 4 });
    expect(await stores.tasks.continue(answer(run, { key }))).toMatchObject({ reason: 'repeated' });
    const second = await stores.runs.claim(run.tenantId, first.runId, 'worker', 30_000);
    await endTurn(stores, second!, 5, ASKS);
    await expire(run.tenantId);
    expect(await stores.tasks.continue(answer(run))).toMatchObject({ ok: true, sequence: 7 });
  });

  it('under the key of another task does not pass for the turn of this one', async () => {
    const run = await interrupted();
    // The other task's log stands where this one's will.
    const other = await startTask(stores, newTask({ tenantId: run.tenantId }));
    await endTurn(stores, other, 2, ASKS);
    expect(await stores.tasks.continue(answer(other))).toMatchObject({ ok: true, sequence: 4 });
    expect(await stores.tasks.continue(answer(run))).toMatchObject({
      reason: 'repeated',
      earlier: { taskId: other.taskId },
    });
    expect((await stores.tasks.get(run.tenantId, run.taskId))?.sequence).toBe(3);
  });
});
