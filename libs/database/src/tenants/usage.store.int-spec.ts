import { LOG } from '../../../../test/support/log-sql.js';
import { StreamResponse, TaskState } from '@baton/a2a';
import { randomUUID } from 'node:crypto';
import { type RunQuota, RetentionStore, StorageFullError, UsageStore } from '../index.js';
import {
  type Stores,
  chunk,
  endTurn,
  newTask,
  openStores,
  sql,
  startTask,
  textMessage,
} from '../stores.fixture.js';

let stores: Stores;
let usage: UsageStore;
beforeAll(async () => {
  stores = await openStores();
  usage = new UsageStore(stores.database);
});
afterAll(() => stores.close());

const { TASK_STATE_COMPLETED, TASK_STATE_INPUT_REQUIRED } = TaskState;
const within = (maxStoredBytes: number): RunQuota => ({
  maxInFlight: null,
  maxWaiting: null,
  maxStoredBytes,
  exact: false,
});
const ROOMY = within(1e9);

/** What is added up for the tenant; undefined = nothing is. */
async function added(tenantId: string): Promise<number | undefined> {
  const rows = await sql(stores, `SELECT stored_bytes FROM tenant_usage WHERE tenant_id = '${tenantId}'`);
  const [row] = rows as { stored_bytes: string }[];
  return row && Number(row.stored_bytes);
}

/** A whole count in slices of three tasks. */
async function countAll(tenantId: string): Promise<void> {
  while (!(await usage.count(tenantId, -1, 3)));
}

/** What its tasks say they have stored. */
async function summed(tenantId: string): Promise<number> {
  const rows = await sql(
    stores,
    `SELECT coalesce(sum(stored_bytes), 0) AS sum FROM tasks WHERE tenant_id = '${tenantId}'`,
  );
  return Number((rows as { sum: string }[])[0]!.sum);
}

/** Bytes of a tenant's events and first messages, read back one by one. */
async function read(tenantId: string, taskId: string): Promise<number> {
  const events = await stores.tasks.readEvents(tenantId, taskId, 0, 1000);
  return events.reduce(
    (sum, { payload }) => sum + Buffer.byteLength(JSON.stringify(StreamResponse.toJSON({ payload }))),
    0,
  );
}

describe('what a tenant has stored', () => {
  it('is added up where there is a limit, turn by turn, and agrees with its tasks and its log', async () => {
    const tenantId = randomUUID();
    const run = await startTask(stores, { ...newTask({ tenantId, text: 'äöü' }), quota: ROOMY });
    const opened = await added(tenantId);
    expect(opened).toBe(await summed(tenantId));
    await stores.runs.append(run, { afterSequence: 2, events: [chunk(run, 'x'.repeat(500))] });
    expect(await added(tenantId)).toBe(opened);
    await endTurn(stores, run, 3, TASK_STATE_INPUT_REQUIRED, [chunk(run, 'y'.repeat(300))]);
    const first = (await added(tenantId))!;
    expect(first).toBe(await summed(tenantId));
    expect(first - opened!).toBeGreaterThan(800);
    // The message of the task is stored once; the platform's `working` is not counted.
    const log = await read(tenantId, run.taskId);
    expect(Math.abs(first - log)).toBeLessThan(600);

    const answer = { tenantId, agentId: 'echo', taskId: run.taskId, runId: randomUUID(), extensions: [] };
    await stores.tasks.continue({ ...answer, message: textMessage('z'.repeat(200)), quota: ROOMY });
    const next = (await stores.runs.claim(tenantId, answer.runId, 'w', 30_000))!;
    await endTurn(stores, next, next.snapshot.sequence, TASK_STATE_COMPLETED);
    expect(await added(tenantId)).toBe(await summed(tenantId));
    expect((await added(tenantId))! - first).toBeGreaterThan(200);
    expect((await added(tenantId))! - first).toBeLessThan(1000);
  });

  it('is never more than the limit under concurrent creates; a refused one has written nothing', async () => {
    const tenantId = randomUUID();
    await stores.tasks.create({ ...newTask({ tenantId }), quota: ROOMY });
    const one = (await added(tenantId))!;
    const quota = within(Math.floor(one * 5.5));
    const creates = Array.from({ length: 20 }, () =>
      stores.tasks.create({ ...newTask({ tenantId }), quota }),
    );
    const outcomes = await Promise.allSettled(creates);
    const refused = outcomes.filter(({ status }) => status === 'rejected') as PromiseRejectedResult[];
    expect(refused).toHaveLength(16);
    for (const { reason } of refused) expect(reason).toBeInstanceOf(StorageFullError);
    expect(await sql(stores, `SELECT 1 FROM runs WHERE tenant_id = '${tenantId}'`)).toHaveLength(5);
    expect(await sql(stores, `SELECT 1 FROM ${LOG} e WHERE tenant_id = '${tenantId}'`)).toHaveLength(5);
    expect(await added(tenantId)).toBe(await summed(tenantId));
  });

  it('counts what was there before the limit', async () => {
    const tenantId = randomUUID();
    await stores.tasks.create(newTask({ tenantId, text: 'x'.repeat(5000) }));
    expect(await added(tenantId)).toBeUndefined();
    const create = (maxStoredBytes: number) =>
      stores.tasks.create({ ...newTask({ tenantId }), quota: within(maxStoredBytes) });
    await expect(create(5000)).rejects.toThrow(StorageFullError);
    expect(await added(tenantId)).toBe(await summed(tenantId));
    await create(20_000);
    expect(await added(tenantId)).toBe(await summed(tenantId));
  });

  it('is not charged for a message that has come before', async () => {
    const tenantId = randomUUID();
    const key = { hash: Buffer.alloc(32, 7), content: null, hours: 24 };
    const create = () => stores.tasks.create({ ...newTask({ tenantId }), key, quota: ROOMY });
    expect((await create()).created).toBe(true);
    const once = await added(tenantId);
    expect((await create()).created).toBe(false);
    expect(await added(tenantId)).toBe(once);
  });

  it('grows with what a canceled run has said, once', async () => {
    const tenantId = randomUUID();
    const run = await startTask(stores, { ...newTask({ tenantId }), quota: ROOMY });
    const before = (await added(tenantId))!;
    await stores.runs.append(run, { afterSequence: 2, events: [chunk(run, 'x'.repeat(700))] });
    await stores.tasks.cancel(tenantId, null, run.taskId);
    expect((await added(tenantId))! - before).toBeGreaterThan(700);
    expect(await added(tenantId)).toBe(await summed(tenantId));
    const asking = await startTask(stores, { ...newTask({ tenantId }), quota: ROOMY });
    await endTurn(stores, asking, 2, TASK_STATE_INPUT_REQUIRED, [chunk(asking, 'x'.repeat(700))]);
    const asked = await added(tenantId);
    await stores.tasks.cancel(tenantId, null, asking.taskId);
    expect(await added(tenantId)).toBe(asked);
    expect(await summed(tenantId)).toBe(asked);
  });

  it('shrinks when tasks are deleted', async () => {
    const tenantId = randomUUID();
    const run = await startTask(stores, { ...newTask({ tenantId }), quota: ROOMY });
    await endTurn(stores, run, 2, TASK_STATE_COMPLETED, [chunk(run, 'x'.repeat(700))]);
    const quota = within((await added(tenantId))! + 100);
    await expect(stores.tasks.create({ ...newTask({ tenantId }), quota })).rejects.toThrow(StorageFullError);
    await sql(stores, `UPDATE tasks SET status_at = 'epoch' WHERE tenant_id = '${tenantId}'`);
    await new RetentionStore(stores.database).expire([{ tenantId, days: 1 }], 10);
    expect(await added(tenantId)).toBe(0);
    await stores.tasks.create({ ...newTask({ tenantId }), quota });
  });

  it('is put right by a count, while turns go on', async () => {
    const tenantId = randomUUID();
    const create = () => stores.tasks.create({ ...newTask({ tenantId }), quota: ROOMY });
    await create();
    await sql(stores, `UPDATE tenant_usage SET stored_bytes = 12345 WHERE tenant_id = '${tenantId}'`);
    await Promise.all([...Array.from({ length: 20 }, create), countAll(tenantId), countAll(tenantId)]);
    await countAll(tenantId);
    expect(await added(tenantId)).toBe(await summed(tenantId));
  });

  it('is put right by a count with a task that is being stored as the count begins', async () => {
    const tenantId = randomUUID();
    const create = () => stores.tasks.create({ ...newTask({ tenantId }), quota: ROOMY });
    await create();
    const waiting = `SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`;
    const done = await stores.database.inSystem(async (transaction) => {
      await transaction.query({ text: 'SELECT FROM tenant_usage WHERE tenant_id = $1 FOR UPDATE' }, [
        tenantId,
      ]);
      const created = create();
      while ((await sql(stores, waiting)).length < 1);
      const counted = usage.count(tenantId, -1);
      while ((await sql(stores, waiting)).length < 2);
      return { all: Promise.all([created, counted]) };
    });
    expect(await done.all).toMatchObject([{ created: true }, true]);
    expect(await added(tenantId)).toBe(await summed(tenantId));
  });

  it('is the same after a count in slices as one by one, whatever begins, ends and is deleted meanwhile', async () => {
    const tenantId = randomUUID();
    const asking = await Promise.all(
      Array.from({ length: 40 }, async () => {
        const run = await startTask(stores, newTask({ tenantId }));
        await endTurn(stores, run, 2, TASK_STATE_INPUT_REQUIRED, [chunk(run, 'x'.repeat(100))]);
        return run;
      }),
    );
    const running = await Promise.all(
      Array.from({ length: 40 }, () => startTask(stores, newTask({ tenantId }))),
    );
    expect(await usage.count(tenantId, -1, 3)).toBe(false);
    const answer = ({ taskId }: { taskId: string }) => {
      const next = { tenantId, agentId: 'echo', taskId, runId: randomUUID(), extensions: [] };
      return stores.tasks.continue({ ...next, message: textMessage('y'.repeat(200)), quota: ROOMY });
    };
    const retention = new RetentionStore(stores.database);
    const doomed = asking.slice(20).map(({ taskId }) => taskId);
    const turns: (() => Promise<unknown>)[] = [
      ...asking.slice(0, 20).map((run) => () => answer(run)),
      ...asking.slice(20).map((run) => () => stores.tasks.cancel(tenantId, null, run.taskId)),
      ...running.map(
        (run) => () => endTurn(stores, run, 2, TASK_STATE_COMPLETED, [chunk(run, 'z'.repeat(300))]),
      ),
      ...Array.from(
        { length: 40 },
        () => () => stores.tasks.create({ ...newTask({ tenantId }), quota: ROOMY }),
      ),
    ];
    let slices = 0;
    const counting = (async () => {
      while (!(await usage.count(tenantId, 600, 3))) slices += 1;
    })();
    while (turns.length > 0) {
      const [turn] = turns.splice(Math.floor(Math.random() * turns.length), 1);
      await turn!();
    }
    const text = `UPDATE tasks SET status_at = 'epoch' WHERE id IN (${doomed.map((id) => `'${id}'`).join()})`;
    await sql(stores, text);
    await retention.expire([{ tenantId, days: 1 }], 10);
    await counting;
    expect(slices).toBeGreaterThan(10);
    expect(await added(tenantId)).toBe(await summed(tenantId));
    await retention.expire([{ tenantId, days: 1 }], 10);
    expect(await added(tenantId)).toBe(await summed(tenantId));
  });

  it('refuses nothing while it is being counted, and what is too much when it has been', async () => {
    const tenantId = randomUUID();
    await Promise.all(Array.from({ length: 10 }, () => stores.tasks.create(newTask({ tenantId }))));
    const create = () => stores.tasks.create({ ...newTask({ tenantId }), quota: within(1) });
    expect(await usage.count(tenantId, -1, 3)).toBe(false);
    expect((await create()).created).toBe(true);
    await countAll(tenantId);
    await expect(create()).rejects.toThrow(StorageFullError);
    expect(await added(tenantId)).toBe(await summed(tenantId));
  });

  it('is counted for whom it is due, which a tenant without a limit is later', async () => {
    const [fresh, old, unlimited, never] = [randomUUID(), randomUUID(), randomUUID(), randomUUID()];
    for (const tenantId of [fresh, old, unlimited]) await countAll(tenantId);
    await sql(
      stores,
      `UPDATE tenant_usage SET counted_at = now() - interval '601 s' WHERE tenant_id <> '${fresh}'`,
    );
    const limited = [fresh, old, never].map((tenantId) => ({ tenantId, seconds: 600 }));
    expect(await usage.due([...limited, { tenantId: unlimited, seconds: 3_600 }])).toEqual([never, old]);
    expect([await added(unlimited), await added(fresh)]).toEqual([0, 0]);
  });

  it('is known for the tenants that keep most, the largest first', async () => {
    const tenants = [randomUUID(), randomUUID(), randomUUID()];
    for (const [i, tenantId] of tenants.entries()) {
      await sql(stores, `INSERT INTO tenants (id, slug) VALUES ('${tenantId}', 'size-${i}')`);
      await Promise.all(Array.from({ length: i + 1 }, () => stores.tasks.create(newTask({ tenantId }))));
      await countAll(tenantId);
    }
    const largest = await usage.largest(2);
    expect(largest.map(({ tenant }) => tenant)).toEqual(['size-2', 'size-1']);
    expect(largest[0]!.storedBytes).toBe(await summed(tenants[2]!));
  });
});
