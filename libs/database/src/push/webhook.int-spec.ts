import { TaskState } from '@baton/a2a';
import { randomUUID } from 'node:crypto';
import type { Actor } from '../audit/audit-records.js';
import { CatalogClient, PLATFORM_ACTOR, TenantStore } from '../index.js';
import { endTurn, newTask, openStores, sql, startTask, status, type Stores } from '../stores.fixture.js';
import { WebhookStore } from './webhook.store.js';

let stores: Stores;
let catalog: CatalogClient;
let webhooks: WebhookStore;

beforeAll(async () => {
  stores = await openStores();
  catalog = new CatalogClient(stores.url);
  webhooks = new WebhookStore(catalog, stores.database);
});
afterAll(async () => {
  await catalog.close();
  await stores.close();
});

const BY: Actor = { kind: 'token', key: 'token:owner' };
const SEALED = { keyId: 'k', nonce: Buffer.from('n'), ciphertext: Buffer.from('c') };
const OLD = 'https://old.example/';

const create = async (tenantId: string): Promise<string> => {
  const id = randomUUID();
  const more = { url: OLD, agents: [], states: [], enabled: true };
  await webhooks.create({ tenantId, id, ...more }, SEALED, BY);
  return id;
};

/** Where the events of each task go, by webhook; an empty name: a caller has set it. */
const receivers = async (tenantId: string): Promise<unknown[]> =>
  (
    (await sql(
      stores,
      `SELECT webhook_id, url FROM push_configs WHERE tenant_id = '${tenantId}' AND state <> 'removed' ORDER BY created_at, id`,
    )) as { webhook_id: string | null; url: string }[]
  )
    .map(({ webhook_id: id, url }) => `${id ?? ''} ${url}`)
    .sort();

it('a webhook knows the state that a task had at an event, also if later events share its row', async () => {
  const { id: tenantId } = await new TenantStore(catalog).create(`t-${randomUUID()}`, PLATFORM_ACTOR);
  const id = await create(tenantId);
  const run = await startTask(stores, newTask({ tenantId }));
  const { TASK_STATE_COMPLETED, TASK_STATE_WORKING } = TaskState;
  await endTurn(stores, run, 2, TASK_STATE_COMPLETED, [status(run, TASK_STATE_WORKING)]);
  const rows = `SELECT first_sequence, sequence FROM task_events WHERE task_id = '${run.taskId}' AND sequence > 2`;
  expect(await sql(stores, rows)).toEqual([{ first_sequence: 3, sequence: 4 }]);
  const config = { taskId: run.taskId, configId: `webhook:${id}` };
  const states = [1, 2, 3, 4].map(
    async (after) => (await webhooks.target(tenantId, config, after))?.stateBefore,
  );
  expect(await Promise.all(states)).toEqual([
    'TASK_STATE_SUBMITTED',
    'TASK_STATE_WORKING',
    'TASK_STATE_WORKING',
    'TASK_STATE_COMPLETED',
  ]);
});

it('a webhook that moves or is deleted changes its own receivers alone, and waits for no others', async () => {
  const { id: tenantId } = await new TenantStore(catalog).create(`t-${randomUUID()}`, PLATFORM_ACTOR);
  const [one, two] = [await create(tenantId), await create(tenantId)];
  // The first one has its events.
  const over = await startTask(stores, newTask({ tenantId }));
  await endTurn(stores, over, 2);
  await sql(
    stores,
    `UPDATE push_configs SET delivered_sequence = head_sequence, due_at = NULL WHERE tenant_id = '${tenantId}'`,
  );
  const open = await startTask(stores, newTask({ tenantId }));
  await sql(
    stores,
    `INSERT INTO push_configs (tenant_id, task_id, id, url, protocol, delivered_sequence, head_sequence, due_at)
     VALUES ('${tenantId}', '${open.taskId}', 'c', '${OLD}', '1.0', 1, 2, now())`,
  );
  const others = [` ${OLD}`, `${two} ${OLD}`, `${two} ${OLD}`];
  expect(await receivers(tenantId)).toEqual([...others, `${one} ${OLD}`, `${one} ${OLD}`].sort());
  const url = 'https://new.example/';
  expect(await webhooks.change(tenantId, one, { url }, BY)).toMatchObject({ url });
  expect(await receivers(tenantId)).toEqual([...others, `${one} ${OLD}`, `${one} ${url}`].sort());
  // Requests to other receivers that are under way, and whose answer no longer counts.
  await sql(
    stores,
    `UPDATE push_configs SET lease_until = now() + interval '1 hour' WHERE tenant_id = '${tenantId}' AND webhook_id IS DISTINCT FROM '${one}'`,
  );
  expect(await webhooks.remove(tenantId, one, BY)).toBe(true);
  expect(await receivers(tenantId)).toEqual(others.toSorted());
});
