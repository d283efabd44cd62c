import { TaskState } from '@baton/a2a';
import { randomUUID } from 'node:crypto';
import { setImmediate as turnOfLoop } from 'node:timers/promises';
import { Client } from 'pg';
import { type AppendBatch, type ClaimedRun, type NewTask, RunStore } from '../index.js';
import {
  chunk,
  endTurn,
  entry,
  newTask,
  openStores,
  sql,
  startTask,
  type Stores,
  texts,
} from '../stores.fixture.js';
import { LargeWriteShares } from './large-write-shares.js';

const { TASK_STATE_COMPLETED } = TaskState;
const LEASE_MS = 30_000;

let stores: Stores;
let runs: RunStore;
/** The tenants of each transaction. */
let transactions: string[][];

beforeEach(async () => {
  stores = await openStores();
  transactions = [];
  const { database } = stores;
  const query = database.tenantsQueries.bind(database);
  jest.spyOn(database, 'tenantsQueries').mockImplementation(async (tenants) => {
    transactions.push(tenants.map(([tenantId]) => tenantId));
    return query(tenants);
  });
  runs = new RunStore(database);
});
afterEach(async () => stores.close());

const chunks = (run: ClaimedRun, text: string): AppendBatch => ({
  afterSequence: 2,
  events: [chunk(run, text, false), chunk(run, text)],
});
const claim = async ({ tenantId, runId }: NewTask) => runs.claim(tenantId, runId, 'worker', LEASE_MS);
const start = async (tenantId: string): Promise<ClaimedRun> => startTask(stores, newTask({ tenantId }));

async function logOf(run: ClaimedRun): Promise<number[]> {
  const events = await stores.tasks.readEvents(run.tenantId, run.taskId, 0, 100);
  return events.map(({ sequence }) => sequence);
}

it('a group is judged run by run: a refused run stops no other', async () => {
  const tenantId = randomUUID();
  const good = await start(tenantId);
  const ending = await start(tenantId);
  const stale = await start(tenantId);
  const canceled = await start(tenantId);
  const elsewhere = await start(tenantId);
  const other = await start(randomUUID());
  const waiting = newTask({ tenantId });
  await stores.tasks.create(waiting);
  await stores.tasks.cancel(tenantId, null, canceled.taskId);
  transactions = [];
  const outcomes = await Promise.all([
    runs.append(good, chunks(good, 'good')),
    endTurn({ ...stores, runs }, ending, 2, TASK_STATE_COMPLETED, [chunk(ending, 'bye', false)]),
    runs.append({ ...stale, attempt: 2 }, chunks(stale, 'stale')),
    // Its head is that of the writer.
    runs.append(canceled, { ...chunks(canceled, 'late'), afterSequence: 3 }),
    runs.append(elsewhere, { ...chunks(elsewhere, 'gap'), afterSequence: 1 }),
    runs.append(other, chunks(other, 'other')),
    claim(waiting),
    runs.claim(tenantId, good.runId, 'somebody else', LEASE_MS),
  ]);
  expect(outcomes).toMatchObject([
    { ok: true, firstSequence: 3 },
    { ok: true, firstSequence: 3, hasChildren: false },
    { ok: false },
    { ok: false },
    { ok: false },
    { ok: true, firstSequence: 3 },
    { runId: waiting.runId, attempt: 1, message: { parts: [{ content: { value: 'hello' } }] } },
    undefined,
  ]);
  expect(transactions).toEqual([[tenantId, other.tenantId].toSorted()]);
  const logs = await Promise.all([good, ending, stale, canceled, elsewhere, other].map(logOf));
  expect(logs).toEqual([
    [1, 2, 3, 4],
    [1, 2, 3, 4],
    [1, 2],
    [1, 2, 3],
    [1, 2],
    [1, 2, 3, 4],
  ]);
  expect((await stores.tasks.get(tenantId, ending.taskId))?.task.status?.state).toBe(TASK_STATE_COMPLETED);
  expect(await sql(stores, `SELECT state FROM runs WHERE id = '${ending.runId}'`)).toEqual([
    { state: 'succeeded' },
  ]);
});

it('a run of another tenant is neither claimed nor written, also in a group', async () => {
  const mine = await start(randomUUID());
  const theirs = await start(randomUUID());
  const waiting = newTask();
  await stores.tasks.create(waiting);
  const { tenantId } = mine;
  const outcomes = await Promise.all([
    runs.append(mine, chunks(mine, 'mine')),
    runs.append({ ...theirs, tenantId }, chunks(theirs, 'forged')),
    runs.claim(tenantId, waiting.runId, 'worker', LEASE_MS),
  ]);
  expect(outcomes).toEqual([{ ok: true, firstSequence: 3 }, { ok: false }, undefined]);
  expect([await logOf(theirs), (await claim(waiting))?.attempt]).toEqual([[1, 2], 1]);
});

it('tasks of two tenants that have the same ids are written apart, in one transaction', async () => {
  const one = newTask();
  const other = { ...newTask(), runId: one.runId, task: one.task };
  await Promise.all([one, other].map((input) => stores.tasks.create(input)));
  const [mine, theirs] = (await Promise.all([claim(one), claim(other)])) as [ClaimedRun, ClaimedRun];
  expect([mine, theirs]).toMatchObject([
    { tenantId: one.tenantId, attempt: 1 },
    { tenantId: other.tenantId, attempt: 1 },
  ]);
  transactions = [];
  const outcomes = await Promise.all([
    runs.append(mine, chunks(mine, 'mine')),
    endTurn({ ...stores, runs }, theirs, 2, TASK_STATE_COMPLETED, [chunk(theirs, 'theirs', false)]),
  ]);
  expect(outcomes).toMatchObject([
    { ok: true, firstSequence: 3 },
    { ok: true, firstSequence: 3, hasChildren: false },
  ]);
  expect(transactions).toEqual([[one.tenantId, other.tenantId].toSorted()]);
  const found = await Promise.all(
    [one, other].map(async ({ tenantId, task }) => (await stores.tasks.get(tenantId, task.id))?.task),
  );
  expect(found.map((task) => task?.status?.state)).toEqual([
    TaskState.TASK_STATE_WORKING,
    TASK_STATE_COMPLETED,
  ]);
  expect(found.map((task) => task && texts(task))).toEqual([['mine', 'mine'], ['theirs']]);
});

it('a batch of many events holds up no other tenant', async () => {
  const [large, small] = [await start(randomUUID()), await start(randomUUID())];
  transactions = [];
  await Promise.all([
    runs.append(large, chunks(large, 'x'.repeat(10_000))),
    runs.append(small, chunks(small, 'hello')),
  ]);
  expect(transactions).toEqual([[large.tenantId], [small.tenantId]]);
});

it('a tenant whose large writes must wait still writes small ones, and holds up no other tenant', async () => {
  const tenantId = randomUUID();
  const [large, small, other] = [await start(tenantId), await start(tenantId), await start(randomUUID())];
  let isTurn = (): void => undefined;
  const turn = new Promise<void>((resolve) => (isTurn = resolve));
  jest
    .spyOn(LargeWriteShares.prototype, 'runLargeWrite')
    .mockImplementationOnce(async (_, write) => turn.then(write));
  const late = runs.append(large, chunks(large, 'x'.repeat(10_000)));
  await Promise.all([small, other].map((run) => runs.append(run, chunks(run, 'hello'))));
  expect(await logOf(large)).toEqual([1, 2]);
  isTurn();
  expect(await late).toEqual({ ok: true, firstSequence: 3 });
});

it('a run that is claimed twice at once has one owner', async () => {
  const input = newTask();
  await stores.tasks.create(input);
  const found = await Promise.all([claim(input), claim(input), claim(newTask({ tenantId: input.tenantId }))]);
  expect(found.map((run) => run?.attempt)).toEqual([1, undefined, undefined]);
});

it('an attempt that is over writes nothing when its run is claimed in the same group', async () => {
  const old = await start(randomUUID());
  await runs.returnToQueue(old);
  const outcomes = await Promise.all([
    runs.append(old, chunks(old, 'late')),
    runs.claim(old.tenantId, old.runId, 'worker', LEASE_MS),
  ]);
  expect(outcomes).toMatchObject([{ ok: false }, { attempt: 2, snapshot: { sequence: 2 } }]);
});

it('the error of a value that Postgres cannot store reaches its writer alone', async () => {
  const tenantId = randomUUID();
  const [one, bad, two] = [await start(tenantId), await start(tenantId), await start(tenantId)];
  const [{ payload }] = chunks(bad, '').events as [AppendBatch['events'][number]];
  const outcomes = await Promise.allSettled([
    runs.append(one, chunks(one, 'one')),
    runs.append(bad, { afterSequence: 2, events: [{ payload, json: '{"no json' }] }),
    runs.append(two, chunks(two, 'two')),
  ]);
  const written = { status: 'fulfilled', value: { ok: true, firstSequence: 3 } };
  expect(outcomes).toMatchObject([written, { status: 'rejected', reason: { code: '22P02' } }, written]);
  expect(await Promise.all([one, bad, two].map(logOf))).toEqual([
    [1, 2, 3, 4],
    [1, 2],
    [1, 2, 3, 4],
  ]);
});

it('the error of a value that Postgres cannot store reaches no other tenant', async () => {
  const [one, bad, two] = [await start(randomUUID()), await start(randomUUID()), await start(randomUUID())];
  const [{ payload }] = chunks(bad, '').events as [AppendBatch['events'][number]];
  const outcomes = await Promise.allSettled([
    runs.append(one, chunks(one, 'one')),
    runs.append(bad, { afterSequence: 2, events: [{ payload, json: '{"no json' }] }),
    runs.append(two, chunks(two, 'two')),
  ]);
  const written = { status: 'fulfilled', value: { ok: true, firstSequence: 3 } };
  expect(outcomes).toMatchObject([written, { status: 'rejected', reason: { code: '22P02' } }, written]);
  transactions = [];
  const next = { ...chunks(one, 'more'), afterSequence: 4 };
  await Promise.all([runs.append(one, next), runs.append(bad, chunks(bad, 'good')), claim(newTask())]);
  expect(transactions.map((tenants) => tenants.includes(bad.tenantId))).toEqual([false, true]);
});

it('a task that another transaction has locked delays no other tenant', async () => {
  const [free, locked] = [await start(randomUUID()), await start(randomUUID())];
  const client = new Client({ connectionString: stores.url });
  await client.connect();
  try {
    await client.query(`BEGIN; SET LOCAL baton.tenant = '${locked.tenantId}'`);
    await client.query('SELECT FROM tasks WHERE id = $1 FOR UPDATE', [locked.taskId]);
    let isWritten = false;
    const late = runs.append(locked, chunks(locked, 'late')).finally(() => (isWritten = true));
    expect(await runs.append(free, chunks(free, 'free'))).toEqual({ ok: true, firstSequence: 3 });
    // Its tenant has transactions of its own for a while.
    transactions = [];
    const more = await Promise.all([
      runs.append(free, { ...chunks(free, 'more'), afterSequence: 4 }),
      runs.claim(locked.tenantId, randomUUID(), 'worker', LEASE_MS),
    ]);
    expect(more).toEqual([{ ok: true, firstSequence: 5 }, undefined]);
    expect(transactions.flat().toSorted()).toEqual([free.tenantId, locked.tenantId].toSorted());
    expect(transactions).toHaveLength(2);
    expect(isWritten).toBe(false);
    await client.query('COMMIT');
    expect(await late).toEqual({ ok: true, firstSequence: 3 });
  } finally {
    await client.end();
  }
});

it('a tenant whose tasks are locked for moments holds up other tenants once', async () => {
  const locked = [await start(randomUUID())];
  const [{ tenantId }] = locked as [ClaimedRun];
  locked.push(await start(tenantId), await start(tenantId));
  const [one, other] = [await start(randomUUID()), await start(randomUUID())];
  const query = stores.database.tenantsQueries.bind(stores.database);
  const client = new Client({ connectionString: stores.url });
  await client.connect();
  let refusals = 0;
  stores.database.tenantsQueries = (tenants) =>
    query(tenants).catch(async (error: unknown) => {
      refusals += 1;
      // What the tenant writes alone is written at once.
      await client.query('COMMIT');
      throw error;
    });
  try {
    for (const [i, run] of locked.entries()) {
      transactions = [];
      await client.query(`BEGIN; SET LOCAL baton.tenant = '${tenantId}'`);
      await client.query('SELECT FROM tasks WHERE id = $1 FOR UPDATE', [run.taskId]);
      const more = [one, other].map((free) =>
        runs.append(free, { ...chunks(free, 'more'), afterSequence: 2 + 2 * i }),
      );
      const late = runs.append(run, chunks(run, 'late'));
      await Promise.all(more);
      const both = [one.tenantId, other.tenantId].toSorted();
      expect(transactions.map((tenants) => tenants.toSorted())).toContainEqual(both);
      await client.query('COMMIT');
      expect(await late).toEqual({ ok: true, firstSequence: 3 });
    }
    expect(refusals).toBe(1);
  } finally {
    await client.end();
  }
});

it('a task that another transaction has locked delays its own run alone', async () => {
  const tenantId = randomUUID();
  const [free, locked] = [await start(tenantId), await start(tenantId)];
  const client = new Client({ connectionString: stores.url });
  await client.connect();
  try {
    await client.query(`BEGIN; SET LOCAL baton.tenant = '${tenantId}'`);
    await client.query('SELECT FROM tasks WHERE id = $1 FOR UPDATE', [locked.taskId]);
    let isWritten = false;
    const late = runs.append(locked, chunks(locked, 'late')).finally(() => (isWritten = true));
    expect(await runs.append(free, chunks(free, 'free'))).toEqual({ ok: true, firstSequence: 3 });
    expect(isWritten).toBe(false);
    await client.query('COMMIT');
    expect(await late).toEqual({ ok: true, firstSequence: 3 });
  } finally {
    await client.end();
  }
});

it('tasks that another transaction has locked leave connections for other tenants', async () => {
  const tenantId = randomUUID();
  const locked = await Promise.all(Array.from({ length: 20 }, () => start(tenantId)));
  const free = await start(randomUUID());
  const client = new Client(stores.url);
  await client.connect();
  try {
    await client.query(`BEGIN; SET LOCAL baton.tenant = '${tenantId}'`);
    await client.query('SELECT FROM tasks FOR UPDATE');
    transactions = [];
    const late = Promise.all(locked.map((run) => runs.append(run, chunks(run, 'late'))));
    // A group, and then some of them one by one.
    while (transactions.length < 5) await turnOfLoop();
    expect(await runs.append(free, chunks(free, 'early'))).toMatchObject({ ok: true });
    await client.query('COMMIT');
    expect((await late).map(({ ok }) => ok)).toEqual(locked.map(() => true));
  } finally {
    await client.end();
  }
});

it('a tenant is charged for what the turns of a group have stored', async () => {
  const tenantId = randomUUID();
  const ended = [await start(tenantId), await start(tenantId)];
  const open = await start(tenantId);
  const usage = `SELECT stored_bytes::int AS bytes, counting_bytes::int AS counting FROM tenant_usage WHERE tenant_id = '${tenantId}'`;
  const stored = `SELECT coalesce(sum(open_bytes), 0)::int AS bytes FROM tasks WHERE tenant_id = '${tenantId}' AND active_run_id IS NULL`;
  // A count is under way, and has passed the first of these tasks.
  const [passed] = ended.map(({ taskId }) => taskId).toSorted();
  await sql(
    stores,
    `INSERT INTO tenant_usage (tenant_id, stored_bytes, counting_after) VALUES ('${tenantId}', 0, '${passed}')`,
  );
  await Promise.all([
    ...ended.map((run, i) =>
      endTurn({ ...stores, runs }, run, 2, TASK_STATE_COMPLETED, [chunk(run, `é${i}`, false)]),
    ),
    runs.append(open, chunks(open, 'goes on')),
  ]);
  const [{ bytes }] = (await sql(stores, stored)) as [{ bytes: number }];
  const [{ counting }] = (await sql(
    stores,
    `SELECT open_bytes::int AS counting FROM tasks WHERE id = '${passed}'`,
  )) as [{ counting: number }];
  expect(bytes).toBeGreaterThan(500);
  expect(await sql(stores, usage)).toEqual([{ bytes, counting }]);
});

it('messages and replaced artifacts of a group belong to their own tasks', async () => {
  const tenantId = randomUUID();
  const pair = [await start(tenantId), await start(tenantId)] as const;
  await Promise.all(
    pair.map(async (run, i) => {
      const events = [chunk(run, 'draft', false), chunk(run, `text ${i}`, false)];
      return endTurn({ ...stores, runs }, run, 2, TASK_STATE_COMPLETED, [
        ...events.slice(0, i + 1),
        entry({
          $case: 'statusUpdate',
          value: {
            taskId: run.taskId,
            contextId: '',
            status: {
              state: TaskState.TASK_STATE_WORKING,
              message: { ...run.message, messageId: `said ${i}` },
              timestamp: undefined,
            },
            metadata: undefined,
          },
        }),
      ]);
    }),
  );
  const found = await Promise.all(pair.map(async ({ taskId }) => stores.tasks.get(tenantId, taskId)));
  expect(found.map((stored) => stored?.task.history.map(({ messageId }) => messageId).at(-1))).toEqual([
    'said 0',
    'said 1',
  ]);
  expect(found.map((stored) => stored?.task.artifacts[0]?.parts[0]?.content?.value)).toEqual([
    'draft',
    'text 1',
  ]);
});
