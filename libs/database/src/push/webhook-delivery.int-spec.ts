import { randomUUID } from 'node:crypto';
import type { Actor } from '../audit/audit-records.js';
import { newTask, openStores, sql, startTask, type Stores } from '../stores.fixture.js';
import { WebhookDeliveryStore } from './webhook-delivery.store.js';

let stores: Stores;
let deliveries: WebhookDeliveryStore;

beforeAll(async () => {
  stores = await openStores();
  deliveries = new WebhookDeliveryStore(stores.database);
});
afterAll(() => stores.close());

const BY: Actor = { kind: 'token', key: 'token:owner' };

interface Config {
  state: string;
  leaseUntil?: string;
  failing?: boolean;
}

/** A task whose events the webhook has, but for the last. */
async function delivered(tenantId: string, webhookId: string, { state, leaseUntil, failing = true }: Config) {
  const { taskId } = await startTask(stores, newTask({ tenantId }));
  await sql(
    stores,
    `INSERT INTO push_configs (tenant_id, task_id, id, webhook_id, url, protocol, state, delivered_sequence, head_sequence,
       failures, failing_since, lease_until)
     VALUES ('${tenantId}', '${taskId}', 'w', '${webhookId}', 'https://w.example', 'webhook', '${state}', 1, 2,
       ${failing ? '3, now()' : '0, NULL'}, ${leaseUntil ?? 'NULL'})`,
  );
  return taskId;
}

const rowOf = async (taskId: string): Promise<unknown> =>
  (
    await sql(
      stores,
      `SELECT state, failures, due_at IS NOT NULL AS is_due FROM push_configs WHERE task_id = '${taskId}'`,
    )
  )[0];

it('a webhook gets a task again, unless a request is under way or the webhook was deleted', async () => {
  const [tenantId, webhookId] = [randomUUID(), randomUUID()];
  const add = (config: Config) => delivered(tenantId, webhookId, config);
  const dead = await add({ state: 'dead' });
  const leased = await add({ state: 'active', leaseUntil: `now() + interval '1 hour'` });
  const removed = await add({ state: 'removed' });
  const elsewhere = await delivered(tenantId, randomUUID(), { state: 'dead' });

  const redeliver = (taskId: string) => deliveries.redeliver(tenantId, webhookId, taskId, BY);
  expect(await redeliver(dead)).toBe(true);
  expect(await rowOf(dead)).toEqual({ state: 'active', failures: 0, is_due: true });
  for (const [taskId, state] of [
    [leased, 'active'],
    [removed, 'removed'],
    [elsewhere, 'dead'],
  ] as const) {
    expect(await redeliver(taskId)).toBe(false);
    expect(await rowOf(taskId)).toEqual({ state, failures: 3, is_due: false });
  }
});

it('the list has the tasks of the webhook, the newest first, without deleted configs', async () => {
  const [tenantId, webhookId] = [randomUUID(), randomUUID()];
  const add = (state: string, webhook = webhookId) => delivered(tenantId, webhook, { state });
  const kept = [await add('active'), await add('dead'), await add('ended')].toSorted().toReversed();
  await add('removed');
  await add('active', randomUUID());
  const list = async (page: { after?: string; task?: string } = {}, limit = 10) =>
    (await deliveries.list(tenantId, webhookId, { after: undefined, task: undefined, ...page, limit })).map(
      ({ taskId }) => taskId,
    );
  expect(await list()).toEqual(kept);
  expect(await list({}, 2)).toEqual(kept.slice(0, 2));
  expect(await list({ after: kept[0]! })).toEqual(kept.slice(1));
  expect(await list({ task: kept[1]! })).toEqual([kept[1]]);
});

it('the health of a webhook counts the tasks that it lacks events of, and those that were given up, and shows the newest answer', async () => {
  const [tenantId, webhookId] = [randomUUID(), randomUUID()];
  for (const state of ['active', 'active', 'dead', 'dead', 'dead', 'ended'])
    await delivered(tenantId, webhookId, { state });
  await delivered(tenantId, webhookId, { state: 'active', failing: false });
  await delivered(tenantId, randomUUID(), { state: 'dead' });
  await sql(
    stores,
    `UPDATE push_configs SET last_status = n, last_error = 'error ' || n
     FROM (SELECT task_id AS task, row_number() OVER (ORDER BY task_id) AS n FROM push_configs WHERE webhook_id = '${webhookId}') numbered
     WHERE task_id = task`,
  );
  expect(await deliveries.health(tenantId, [webhookId])).toMatchObject([
    { webhookId, tasks: 7, retrying: 2, dead: 3, status: 7, error: 'error 7' },
  ]);
});
