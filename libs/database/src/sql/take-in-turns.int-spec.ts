import { TaskState } from '@baton/a2a';
import { randomUUID } from 'node:crypto';
import {
  CompensationStore,
  RemoteCallStore,
  SpendingWarningStore,
  TaskReminderStore,
  TaskTreeStore,
} from '../index.js';
import { newTask, openStores, sql, startTask, type Stores } from '../stores.fixture.js';

let stores: Stores;
beforeAll(async () => {
  stores = await openStores();
});
afterAll(() => stores.close());

const LIMIT = 2;
const CANCELED = TaskState.TASK_STATE_CANCELED;

/** A sweep over the rows of all tenants. */
interface Sweep {
  table: 'tasks' | 'runs' | 'spending_counts';
  /** Column with the time since which a row is due. */
  since: string;
  /** SQL of what else makes a row due. */
  also?: string;
  take: () => Promise<unknown>;
  /** SQL of the rows that were taken. */
  taken: string;
}

const ofTasks = (since: string, take: Sweep['take'], also?: string): Sweep => ({
  table: 'tasks',
  since,
  ...(also !== undefined && { also }),
  take,
  taken: `${since} IS NULL OR ${since} > now()`,
});
const canceled = `state = ${CANCELED}, status_at = now() - interval '1 minute'`;

const SWEEPS: [string, () => Sweep][] = [
  [
    'runs that sleep',
    () => ({
      table: 'runs',
      since: 'not_before',
      also: `state = 'suspended', waits_for = ARRAY[task_id], worker_id = NULL, lease_expires_at = NULL`,
      take: () => new TaskTreeStore(stores.database).wakeDue(LIMIT),
      taken: `state = 'queued'`,
    }),
  ],
  [
    'parked runs',
    () => ({
      table: 'runs',
      since: 'parked_at',
      also: `state = 'suspended', parked = '{"agent": "trial"}', worker_id = NULL, lease_expires_at = NULL`,
      take: async () => {
        await stores.workers.reportCodes({ id: 'w', host: 'h', pid: 1, concurrency: 1 }, { trial: 'new' });
        await stores.runs.wakeParked(60_000, LIMIT);
      },
      taken: `state = 'queued'`,
    }),
  ],
  ['tasks that ask', () => ofTasks('wakes_at', () => stores.tasks.wakeAsking(LIMIT))],
  ['reminders', () => ofTasks('reminds_at', () => new TaskReminderStore(stores.database).claim(LIMIT))],
  [
    'canceled tasks with steps to undo',
    () =>
      ofTasks(
        'compensates_at',
        () => new CompensationStore(stores.database).takeCanceled(LIMIT, 60_000),
        canceled,
      ),
  ],
  [
    'canceled tasks with calls at tool servers',
    () =>
      ofTasks(
        'remote_calls_at',
        () => new RemoteCallStore(stores.database).takeCanceled(LIMIT, 60_000),
        canceled,
      ),
  ],
  [
    'warnings of spending caps',
    () => ({
      table: 'spending_counts',
      since: 'notice_at',
      take: () => new SpendingWarningStore(stores.database).claim(LIMIT),
      taken: 'notice_at > now()',
    }),
  ],
];

/** Three tasks and warnings of a tenant. */
async function three(tenantId: string): Promise<void> {
  await sql(stores, `INSERT INTO tenants (id, slug) VALUES ('${tenantId}', '${tenantId}')`);
  await sql(
    stores,
    `INSERT INTO spending_caps (tenant_id, id, kind, subject, name, period, micros, changed_by)
    VALUES ('${tenantId}', '${tenantId}', 'agent', 'a', 'a', 'day', 100, 'token:ann')`,
  );
  for (const day of [1, 2, 3]) {
    await startTask(stores, newTask({ tenantId }));
    await sql(
      stores,
      `INSERT INTO spending_counts (tenant_id, cap_id, subject, period_start, micros, warned_at)
      VALUES ('${tenantId}', '${tenantId}', '', '2026-01-0${day}', 90, now())`,
    );
  }
}

it.each(SWEEPS)('%s of one tenant are not taken after all those of another', async (_, sweepOf) => {
  const { table, since, also, take, taken } = sweepOf();
  const [first, second] = [randomUUID(), randomUUID()].toSorted() as [string, string];
  await three(first);
  await three(second);
  await sql(
    stores,
    `UPDATE ${table} SET ${also === undefined ? '' : `${also}, `}
      ${since} = now() - CASE WHEN tenant_id = '${first}' THEN interval '1 hour' ELSE interval '1 minute' END
    WHERE tenant_id IN ('${first}', '${second}')`,
  );
  await take();
  const found = await sql(
    stores,
    `SELECT tenant_id AS id FROM ${table} WHERE tenant_id IN ('${first}', '${second}') AND (${taken}) ORDER BY 1`,
  );
  expect(found).toEqual([{ id: first }, { id: second }]);
});
