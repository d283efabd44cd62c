import { LOG } from '../../../../test/support/log-sql.js';
import { TaskState } from '@baton/a2a';
import { randomBytes, randomUUID } from 'node:crypto';
import { CallRecordStore, ConsoleLineStore, JournalStore, RetentionStore, type RunKey } from '../index.js';
import {
  type Stores,
  chunk,
  endTurn,
  newTask,
  openStores,
  sql,
  startTask,
  texts,
} from '../stores.fixture.js';

const JOB_1 = { profile: 'orloj', clientId: 'job-1', own: { owner: 'token:a', unowned: true } };

let stores: Stores;
let retention: RetentionStore;
beforeAll(async () => {
  stores = await openStores();
  retention = new RetentionStore(stores.database);
});
afterAll(async () => stores.close());

const { TASK_STATE_CANCELED, TASK_STATE_COMPLETED, TASK_STATE_FAILED, TASK_STATE_INPUT_REQUIRED } = TaskState;
const TABLES = [
  'tasks',
  `${LOG} e`,
  'task_messages',
  'runs',
  'turn_journal',
  'console_lines',
  'call_records',
];

/** How many rows of each table, or events of the log, belong to the task. */
const rowsOf = async ({ taskId }: { taskId: string }): Promise<number[]> =>
  Promise.all(
    TABLES.map(async (table) => {
      const id = table === 'tasks' ? 'id' : 'task_id';
      return (await sql(stores, `SELECT 1 FROM ${table} WHERE ${id} = '${taskId}'`)).length;
    }),
  );

/** A task whose turn ended in that state so many days ago; its log has `events` chunks between 2 and the end. */
async function endedTask(
  days: number,
  state = TASK_STATE_COMPLETED,
  events = 1,
  tenantId: string = randomUUID(),
) {
  const run = await startTask(stores, newTask({ tenantId }));
  await new JournalStore(stores.database, stores.runs).append(run, 1, 'remembered');
  const line = { at: new Date(), level: 'info', text: 'said' } as const;
  await new ConsoleLineStore(stores.database).append(run, [line]);
  await new CallRecordStore(stores.database).append(run, [{ position: 1, json: '{}' }]);
  const chunks = Array.from({ length: events }, (_, i) => chunk(run, String(i), i > 0));
  await endTurn(stores, run, 2, state, chunks);
  await age(run, days);
  return run;
}

const age = ({ taskId }: RunKey, days: number) =>
  sql(stores, `UPDATE tasks SET status_at = now() - ${days} * interval '1 day' WHERE id = '${taskId}'`);

const expire = async (tenantId: string, days: number, limit = 100) =>
  (await retention.expire([{ tenantId, days }], limit)).tasks;

/** Purge until nothing is left; how much each batch deleted. */
async function purgeAll(limit: number): Promise<number[]> {
  const sizes: number[] = [];
  for (;;) {
    const { events = 0 } = await retention.purge(limit);
    if (events === 0) return sizes;
    sizes.push(events);
  }
}

describe('a task past its retention', () => {
  it('is deleted with all that belongs to it; one that is not past it stays whole', async () => {
    const old = await endedTask(8);
    const { tenantId } = old;
    const young = await endedTask(6, TASK_STATE_COMPLETED, 1, tenantId);
    expect(await expire(tenantId, 7)).toBe(1);
    expect(await stores.tasks.get(tenantId, old.taskId)).toBeUndefined();
    expect(await retention.purge(100)).toEqual({ events: 4, messages: 1, runs: 1 });
    expect(await rowsOf(old)).toEqual([0, 0, 0, 0, 0, 0, 0]);
    expect(await rowsOf(young)).toEqual([1, 4, 1, 1, 1, 1, 1]);
    expect(await expire(tenantId, 7)).toBe(0);
    const filter = { tenantId, pageSize: 10, includeArtifacts: false };
    const { tasks, total } = await stores.tasks.list(filter);
    expect([tasks.map(({ task }) => task.id), total]).toEqual([[young.taskId], 1]);
  });

  it('is one that has ended, however it ended: none that works or waits is ever touched', async () => {
    const tenantId = randomUUID();
    const ended = await Promise.all(
      [TASK_STATE_COMPLETED, TASK_STATE_FAILED].map((state) => endedTask(100, state, 1, tenantId)),
    );
    const canceled = await startTask(stores, newTask({ tenantId }));
    await stores.tasks.cancel(tenantId, null, canceled.taskId);
    await age(canceled, 100);
    const waiting = await endedTask(100, TASK_STATE_INPUT_REQUIRED, 1, tenantId);
    const working = await startTask(stores, newTask({ tenantId }));
    const queued = newTask({ tenantId });
    await stores.tasks.create(queued);
    await sql(stores, `UPDATE tasks SET status_at = 'epoch' WHERE tenant_id = '${tenantId}' AND state < 3`);
    expect(await expire(tenantId, 0.000001)).toBe(3);
    await purgeAll(100);
    for (const task of [...ended, canceled]) expect(await rowsOf(task)).toEqual([0, 0, 0, 0, 0, 0, 0]);
    expect(await rowsOf(waiting)).toEqual([1, 4, 1, 1, 1, 1, 1]);
    expect(await rowsOf(working)).toEqual([1, 2, 1, 1, 0, 0, 0]);
    expect(await rowsOf({ taskId: queued.task.id })).toEqual([1, 1, 1, 1, 0, 0, 0]);
  });

  it('is whole or gone for concurrent readers', async () => {
    const { tenantId, taskId } = await endedTask(8, TASK_STATE_COMPLETED, 40);
    let isPurged = false;
    const read = async (): Promise<number> => {
      for (let whole = 0; ; whole++) {
        const stored = await stores.tasks.get(tenantId, taskId);
        if (!stored) return whole;
        expect(isPurged).toBe(false);
        expect([stored.sequence, stored.task.history.length]).toEqual([43, 1]);
        expect(texts(stored.task)).toHaveLength(40);
      }
    };
    await sql(stores, `UPDATE tasks SET artifacts_sequence = 2 WHERE id = '${taskId}'`);
    const reading = Promise.all([read(), read(), read()]);
    await expire(tenantId, 7);
    await purgeAll(5);
    isPurged = true;
    await reading;
    expect(await stores.tasks.get(tenantId, taskId)).toBeUndefined();
  });

  it('differs from one that never was, for its tenant only', async () => {
    const run = await endedTask(8, TASK_STATE_CANCELED);
    const { tenantId, taskId } = run;
    await expire(tenantId, 7.5);
    const tombstone = await retention.findTombstone(tenantId, taskId);
    expect(tombstone).toMatchObject({ agentId: 'echo', retentionDays: 7.5 });
    expect(tombstone!.deletedAt.getTime() - tombstone!.endedAt.getTime()).toBeGreaterThan(7.9 * 86_400_000);
    expect(await retention.findTombstone(randomUUID(), taskId)).toBeUndefined();
    expect(await retention.findTombstone(tenantId, randomUUID())).toBeUndefined();
    expect(await retention.findTombstone(tenantId, 'nonsense')).toBeUndefined();
    const seen = await stores.database.tenantQuery(
      randomUUID(),
      { text: 'SELECT 1 FROM task_tombstones' },
      [],
    );
    expect(seen).toEqual([]);
  });

  it('goes in the order in which tasks ended, no more at once than asked for', async () => {
    const tenantId = randomUUID();
    const runs: RunKey[] = [];
    for (const days of [9, 11, 10]) runs.push(await endedTask(days, TASK_STATE_COMPLETED, 1, tenantId));
    expect(await expire(tenantId, 7, 2)).toBe(2);
    const left = await Promise.all(runs.map((run) => stores.tasks.get(tenantId, run.taskId)));
    expect(left.map((stored) => stored !== undefined)).toEqual([true, false, false]);
  });

  it('stays where its tenant keeps its tasks', async () => {
    const [strict, lax] = [await endedTask(8), await endedTask(8)];
    const retentions = [
      { tenantId: strict.tenantId, days: 7 },
      { tenantId: lax.tenantId, days: 9 },
    ];
    expect(await retention.expire(retentions, 100)).toEqual({ tasks: 1 });
    expect(await stores.tasks.get(lax.tenantId, lax.taskId)).toBeDefined();
  });

  it('is skipped while another transaction holds it', async () => {
    const run = await endedTask(8);
    await stores.database.inTenant(run.tenantId, async (transaction) => {
      await transaction.query({ text: 'SELECT FROM tasks WHERE id = $1 FOR UPDATE' }, [run.taskId]);
      expect(await expire(run.tenantId, 7)).toBe(0);
    });
    expect(await expire(run.tenantId, 7)).toBe(1);
  });
});

describe('a long log', () => {
  beforeEach(async () => {
    await purgeAll(10_000);
  });

  it('goes slice by slice from its beginning, beside the short ones', async () => {
    const tenantId = randomUUID();
    const long = await endedTask(8, TASK_STATE_COMPLETED, 25, tenantId);
    const short = await endedTask(8, TASK_STATE_COMPLETED, 1, tenantId);
    await expire(tenantId, 7);
    const heads = new Set<number>();
    for (;;) {
      expect(await stores.tasks.readEvents(tenantId, long.taskId, 0, 1)).toEqual([]);
      const ofLong = `SELECT min(sequence) AS first FROM task_events WHERE task_id = '${long.taskId}'`;
      const [row] = (await sql(stores, ofLong)) as { first: number | null }[];
      if (row?.first) heads.add(row.first);
      const { events } = await retention.purge(10);
      if (!events) break;
      expect(events).toBeLessThanOrEqual(10);
    }
    expect(heads.size).toBeGreaterThanOrEqual(3);
    expect([await rowsOf(long), await rowsOf(short)]).toEqual([
      [0, 0, 0, 0, 0, 0, 0],
      [0, 0, 0, 0, 0, 0, 0],
    ]);
  });

  it('is continued by the next sweep after a kill', async () => {
    const run = await endedTask(8, TASK_STATE_COMPLETED, 40);
    await expire(run.tenantId, 7);
    await retention.purge(15);
    const killed = stores.database.inSystem(async (transaction) => {
      await transaction.query({ text: `DELETE FROM task_events WHERE task_id = '${run.taskId}'` }, []);
      throw new Error('killed');
    });
    await expect(killed).rejects.toThrow('killed');
    expect(await rowsOf(run)).toEqual([0, 28, 0, 1, 1, 1, 1]);
    expect(await purgeAll(15)).toEqual([15, 13]);
    expect(await rowsOf(run)).toEqual([0, 0, 0, 0, 0, 0, 0]);
  });

  it('takes its messages with it, those of each slice', async () => {
    const { tenantId, taskId } = await endedTask(8, TASK_STATE_COMPLETED, 17);
    await sql(
      stores,
      `INSERT INTO task_messages (tenant_id, task_id, sequence, message)
       SELECT '${tenantId}', '${taskId}', n, '{}' FROM generate_series(2, 20) n`,
    );
    await expire(tenantId, 7);
    const slices = [];
    for (let i = 0; i < 3; i++) slices.push(await retention.purge(8));
    expect(slices).toMatchObject([
      { events: 8, messages: 8 },
      { events: 8, messages: 8 },
      { events: 4, messages: 4 },
    ]);
  });

  it('is deleted once, by however many at once', async () => {
    const tenantId = randomUUID();
    const runs = await Promise.all(
      Array.from({ length: 12 }, () => endedTask(8, TASK_STATE_COMPLETED, 20, tenantId)),
    );
    const expired = await Promise.all(Array.from({ length: 4 }, () => expire(tenantId, 7, 5)));
    expired.push(await expire(tenantId, 7, 12));
    expect(expired.reduce<number>((sum, count) => sum + (count ?? 0), 0)).toBe(12);
    const purged = (await Promise.all(Array.from({ length: 4 }, () => purgeAll(17)))).flat();
    purged.push(...(await purgeAll(1000)));
    expect(purged.reduce((sum, count) => sum + count, 0)).toBe(12 * 23);
    for (const run of runs) expect(await rowsOf(run)).toEqual([0, 0, 0, 0, 0, 0, 0]);
  });
});

describe('the lock of a sweep', () => {
  it('is held by one process, and free again when that one is gone', async () => {
    let second: boolean | undefined;
    const first = await retention.withLock(async (assertLocked) => {
      second = await retention.withLock(async () => undefined);
      await assertLocked();
    });
    expect([first, second]).toEqual([true, false]);
    const robbed = retention.withLock(async (assertLocked) => {
      await assertLocked();
      await sql(
        stores,
        `SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND database =
         (SELECT oid FROM pg_database WHERE datname = current_database())`,
      );
      await assertLocked();
    });
    await expect(robbed).rejects.toThrow('Postgres is not available');
    expect(await retention.withLock(async () => undefined)).toBe(true);
  });
});

describe('the key of a message', () => {
  it('goes when it has expired, and not before', async () => {
    const tenantId = randomUUID();
    const key = (hours: number) => ({ hash: randomBytes(32), content: null, hours });
    for (const hours of [-1, -2, 1]) await stores.tasks.create({ ...newTask({ tenantId }), key: key(hours) });
    expect(await retention.dropKeys(1)).toEqual({ keys: 1 });
    expect(await retention.dropKeys(10)).toEqual({ keys: 1 });
    expect(await retention.dropKeys(10)).toEqual({ keys: 0 });
    const left = await sql(stores, `SELECT 1 FROM message_keys WHERE tenant_id = '${tenantId}'`);
    expect(left).toHaveLength(1);
  });
});

describe('a tombstone', () => {
  it('goes after its time with the id that the caller gave the task, but not before the log has', async () => {
    const input = { ...newTask(), alias: { profile: 'orloj', clientId: 'job-1' } };
    const run = await startTask(stores, input);
    const { tenantId, taskId } = run;
    await endTurn(stores, run, 2);
    await age(run, 8);
    await expire(tenantId, 7);
    await sql(
      stores,
      `UPDATE task_tombstones SET deleted_at = now() - interval '91 days' WHERE task_id = '${taskId}'`,
    );
    const alias = () => stores.tasks.findAlias({ ...JOB_1, tenantId });
    expect(await retention.forget(90, 10)).toEqual({ tombstones: 0, aliases: 0 });
    await purgeAll(100);
    expect(await retention.forget(92, 10)).toEqual({ tombstones: 0, aliases: 0 });
    expect(await alias()).toEqual({ taskId, agentId: 'echo' });
    expect(await retention.forget(90, 10)).toEqual({ tombstones: 1, aliases: 1 });
    expect(await alias()).toBeUndefined();
    expect(await retention.findTombstone(tenantId, taskId)).toBeUndefined();
  });

  it('leaves an id alone that names a newer task by now', async () => {
    const tenantId = randomUUID();
    const first = newTask({ tenantId });
    const run = await startTask(stores, { ...first, alias: { profile: 'orloj', clientId: 'job-1' } });
    await endTurn(stores, run, 2);
    const second = newTask({ tenantId });
    await stores.tasks.create({
      ...second,
      alias: { profile: 'orloj', clientId: 'job-1', previousTaskId: first.task.id },
    });
    await age(run, 8);
    await expire(tenantId, 7);
    await purgeAll(100);
    await sql(
      stores,
      `UPDATE task_tombstones SET deleted_at = now() - interval '91 days' WHERE tenant_id = '${tenantId}'`,
    );
    expect(await retention.forget(90, 10)).toEqual({ tombstones: 1, aliases: 0 });
    const named = await stores.tasks.findAlias({ ...JOB_1, tenantId });
    expect(named?.taskId).toBe(second.task.id);
  });

  it('has the last sequence of the log of a watched task', async () => {
    const run = await endedTask(8);
    await expire(run.tenantId, 7);
    expect(await stores.tasks.heads([run])).toEqual(new Map([[run.taskId, 4]]));
  });
});
