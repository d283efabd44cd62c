import { TaskState } from '@baton/a2a';
import { randomUUID } from 'node:crypto';
import { CallRecordStore, JournalStore, RetentionStore, UsageStore } from '../index.js';
import { endTurn, newTask, openStores, sql, startTask, type Stores } from '../stores.fixture.js';

let stores: Stores;
let records: CallRecordStore;
let retention: RetentionStore;
beforeAll(async () => {
  stores = await openStores(4);
  records = new CallRecordStore(stores.database);
  retention = new RetentionStore(stores.database);
});
afterAll(async () => stores.close());

const { TASK_STATE_CANCELED, TASK_STATE_COMPLETED } = TaskState;
const record = (position: number, value: unknown = { said: position }) => ({
  position,
  json: JSON.stringify(value),
});

/** Bytes that the task and its tenant count. */
async function counted(tenantId: string, taskId: string): Promise<{ task: number; tenant: number }> {
  const [row] = (await sql(
    stores,
    `SELECT t.stored_bytes::float8 AS task, u.stored_bytes::float8 AS tenant FROM tasks t
     JOIN tenant_usage u USING (tenant_id) WHERE t.tenant_id = '${tenantId}' AND t.id = '${taskId}'`,
  )) as { task: number; tenant: number }[];
  return row!;
}

const age = (taskId: string, days: number) =>
  sql(
    stores,
    `UPDATE call_records SET created_at = now() - ${days} * interval '1 day' WHERE task_id = '${taskId}'`,
  );

describe('records of model calls', () => {
  it('are kept as they are, once, and shown to their tenant alone', async () => {
    const run = await startTask(stores);
    const { tenantId, taskId } = run;
    const hostile = { text: 'nul \0, "quotes", \ud800 and é' };
    await records.append(run, [record(2, hostile), record(4)]);
    await records.append(run, [record(4, 'again')]);
    expect(await records.read(tenantId, taskId, 2)).toEqual(hostile);
    expect(await records.read(tenantId, taskId, 4)).toEqual({ said: 4 });
    expect(await records.read(tenantId, taskId, 3)).toBeUndefined();
    expect(await records.read(randomUUID(), taskId, 2)).toBeUndefined();
    expect(await records.read(tenantId, 'no id', 2)).toBeUndefined();
  });

  it('are stored with the entry of their call, once, and their bytes count', async () => {
    const journal = new JournalStore(stores.database, stores.runs);
    const run = await startTask(stores);
    const { tenantId, taskId } = run;
    const json = JSON.stringify({ said: 'nul \0 and \ud800' });
    expect(await journal.append({ ...run, attempt: run.attempt - 1 }, 1, 'zombie', json)).toBe(false);
    expect(await records.read(tenantId, taskId, 1)).toBeUndefined();
    expect(await journal.append(run, 1, 'mine', json)).toBe(true);
    expect(await journal.append(run, 1, 'mine', '"again"')).toBe(true);
    expect(await records.read(tenantId, taskId, 1)).toEqual(JSON.parse(json));
    const [row] = (await sql(
      stores,
      `SELECT open_bytes::int AS bytes FROM tasks WHERE id = '${taskId}'`,
    )) as { bytes: number }[];
    expect(row?.bytes).toBe('"mine"'.length + Buffer.byteLength(json));
  });

  it('are not stored for a run whose task is canceled while the write waits', async () => {
    const run = await startTask(stores);
    const { tenantId, taskId } = run;
    const waiting = `SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`;
    const { appending } = await stores.database.inTenant(tenantId, async (transaction) => {
      const cancel = `UPDATE tasks SET state = ${TASK_STATE_CANCELED}, active_run_id = NULL WHERE id = $1`;
      await transaction.query({ text: cancel }, [taskId]);
      const appending = records.append(run, [record(1)]);
      while ((await sql(stores, waiting)).length === 0);
      return { appending };
    });
    await appending;
    expect(await records.read(tenantId, taskId, 1)).toBeUndefined();
  });

  it('are those of the current attempt of a run that goes on', async () => {
    const run = await startTask(stores);
    const { tenantId, taskId } = run;
    await records.append({ ...run, attempt: run.attempt + 1 }, [record(1)]);
    await records.append({ ...run, tenantId: randomUUID() }, [record(1)]);
    await endTurn(stores, run, 2, TASK_STATE_COMPLETED, []);
    await records.append(run, [record(1)]);
    expect(await records.read(tenantId, taskId, 1)).toBeUndefined();
  });

  it('count as stored bytes of their task and tenant, until their retention is over', async () => {
    const run = await startTask(stores, newTask({ tenantId: randomUUID() }));
    const { tenantId, taskId } = run;
    while (!(await new UsageStore(stores.database).count(tenantId, -1))) continue;
    const first = record(2, 'é'.repeat(1_000));
    await records.append(run, [first, record(4)]);
    await endTurn(stores, run, 2, TASK_STATE_COMPLETED, []);
    const bytes = Buffer.byteLength(first.json) + record(4).json.length;
    const before = await counted(tenantId, taskId);
    expect(before.task).toBeGreaterThan(bytes);
    await age(taskId, 8);
    expect((await retention.dropCallRecords(7, 1)).callRecords).toBe(1);
    expect((await retention.dropCallRecords(7, 100)).callRecords).toBe(1);
    expect((await retention.dropCallRecords(7, 100)).callRecords).toBe(0);
    const after = await counted(tenantId, taskId);
    expect(before.task - after.task).toBe(bytes);
    expect(before.tenant - after.tenant).toBe(bytes);
    expect(await records.read(tenantId, taskId, 2)).toBeUndefined();
  });

  it('stay while their run goes on, and while they are young', async () => {
    const running = await startTask(stores);
    await records.append(running, [record(1)]);
    await age(running.taskId, 8);
    const young = await startTask(stores);
    await records.append(young, [record(1)]);
    await endTurn(stores, young, 2, TASK_STATE_COMPLETED, []);
    await age(young.taskId, 6);
    await retention.dropCallRecords(7, 100);
    for (const { tenantId, taskId } of [running, young]) {
      expect(await records.read(tenantId, taskId, 1)).toEqual({ said: 1 });
    }
  });
});
