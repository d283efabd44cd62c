import { randomUUID } from 'node:crypto';
import { type ClaimedRun } from '../index.js';
import { openStores, sql, startTask, type Stores } from '../stores.fixture.js';
import { findWork } from './find-work.js';

const STALE_MS = 60_000;
const HOUR_MS = 3_600_000;
const IN_AN_HOUR = `now() + interval '1 hour'`;

let stores: Stores;
beforeAll(async () => {
  stores = await openStores();
});
afterAll(async () => stores.close());

/** The run has this time and no lease, so that no other time is before it. */
const changeRun = (state: string, time: string) => (run: ClaimedRun) =>
  sql(
    stores,
    `UPDATE runs SET state = '${state}', enqueued_at = NULL, lease_expires_at = NULL, ${time} = ${IN_AN_HOUR} WHERE id = '${run.runId}'`,
  );

/** What the next sweep is for, and the change that makes it due in an hour. */
const TIMES: [string, (run: ClaimedRun) => Promise<unknown>][] = [
  [
    'the end of a lease',
    (run) => sql(stores, `UPDATE runs SET lease_expires_at = ${IN_AN_HOUR} WHERE id = '${run.runId}'`),
  ],
  ['the end of a backoff', changeRun('queued', 'not_before')],
  ['the end of a sleep', changeRun('suspended', 'not_before')],
  [
    'a question without an answer',
    (run) => sql(stores, `UPDATE tasks SET wakes_at = ${IN_AN_HOUR} WHERE id = '${run.taskId}'`),
  ],
  [
    'a push notification',
    ({ tenantId, taskId }) =>
      sql(
        stores,
        `INSERT INTO push_configs (tenant_id, task_id, id, url, protocol, delivered_sequence, head_sequence, due_at)
         VALUES ('${tenantId}', '${taskId}', 'c', 'https://a.example', '1.0', 0, 1, ${IN_AN_HOUR})`,
      ),
  ],
  [
    'an operation on many tasks',
    ({ tenantId }) =>
      sql(
        stores,
        `INSERT INTO bulk_operations (id, tenant_id, action, filter, caller, actor, due_at)
         VALUES ('${randomUUID()}', '${tenantId}', 'cancel', '{}', '{}', '{}', ${IN_AN_HOUR})`,
      ),
  ],
];

describe('the next sweep', () => {
  afterEach(async () => {
    await sql(stores, `DELETE FROM bulk_operations`);
    await sql(stores, `DELETE FROM push_configs`);
    await sql(stores, `UPDATE tasks SET wakes_at = NULL`);
    await sql(stores, `UPDATE runs SET not_before = NULL, lease_expires_at = NULL`);
  });

  it.each(TIMES)('comes in time for %s', async (_, makeDue) => {
    const run = await startTask(stores);
    await sql(stores, 'UPDATE runs SET lease_expires_at = NULL');
    await makeDue(run);
    const { nextMs } = await findWork(stores.database, STALE_MS);
    expect(nextMs).toBeGreaterThan(HOUR_MS / 2);
    expect(nextMs).toBeLessThanOrEqual(HOUR_MS);
  });

  it.each(TIMES.slice(1))('has no time of its own for %s that is due already', async (_, makeDue) => {
    const run = await startTask(stores);
    await makeDue(run);
    for (const [table, column] of [
      ['runs', 'not_before'],
      ['tasks', 'wakes_at'],
      ['push_configs', 'due_at'],
      ['bulk_operations', 'due_at'],
    ])
      await sql(stores, `UPDATE ${table} SET ${column} = ${column} - interval '2 hours'`);
    await sql(stores, 'UPDATE runs SET lease_expires_at = NULL');
    expect((await findWork(stores.database, STALE_MS)).nextMs).toBeNull();
  });

  it('has no time while nothing is due', async () => {
    await startTask(stores);
    await sql(stores, 'UPDATE runs SET lease_expires_at = NULL');
    expect((await findWork(stores.database, STALE_MS)).nextMs).toBeNull();
  });
});
