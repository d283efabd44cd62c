import { randomUUID } from 'node:crypto';
import { setImmediate } from 'node:timers/promises';
import { openStores, sql, type Stores } from '../stores.fixture.js';
import { CLAIM, PushDeliveryStore } from './push-delivery.store.js';

let stores: Stores;
let deliveries: PushDeliveryStore;

beforeAll(async () => {
  stores = await openStores();
  deliveries = new PushDeliveryStore(stores.database);
});
afterAll(() => stores.close());
// Not DELETE: a claim would read the dead rows of earlier tests until Postgres vacuums the table.
afterEach(() => sql(stores, 'TRUNCATE push_configs'));

const LIMITS = { limit: 32, perHost: 8, perTenant: 16 };

interface Many {
  tenantId?: string;
  count: number;
  host: string;
  /** When they are due, from now. Below 0: since then. */
  inSeconds?: number;
}

/** Configs of as many tasks, due one after the other. @returns their tenant */
async function add({ tenantId = randomUUID(), count, host, inSeconds = -60 }: Many): Promise<string> {
  await sql(
    stores,
    `INSERT INTO push_configs (tenant_id, task_id, id, url, host, protocol, delivered_sequence, head_sequence, due_at)
     SELECT '${tenantId}', gen_random_uuid(), 'a', 'https://${host || 'old.example'}/' || i, '${host}', '1.0', 1, 2,
       now() + ${inSeconds} * interval '1 second' + i * interval '1 millisecond' FROM generate_series(1, ${count}) i`,
  );
  return tenantId;
}

const claim = async (limits: Partial<typeof LIMITS> = {}) =>
  (await deliveries.claim('w', 60_000, { ...LIMITS, ...limits })).map(({ url }) => new URL(url).host);

/** What a claim reads, in pages of 8 KiB; it is rolled back. */
async function pagesRead(): Promise<number> {
  let pages = NaN;
  const explain = { text: `EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) ${CLAIM.text}` };
  const values = ['w', 60_000, LIMITS.limit, LIMITS.perHost, LIMITS.perTenant];
  const rolledBack = stores.database.inSystem(async (transaction) => {
    type Explained = { 'QUERY PLAN': [{ Plan: Record<string, number> }] };
    const [row] = (await transaction.query(explain, values)) as unknown as Explained[];
    const plan = row!['QUERY PLAN'][0].Plan;
    pages = plan['Shared Hit Blocks']! + plan['Shared Read Blocks']!;
    throw new Error('rolled back');
  });
  await expect(rolledBack).rejects.toThrow('rolled back');
  return pages;
}

describe('what is due for a host without room does not slow down a claim', () => {
  it.each<[string, (tenantId: string) => Promise<unknown>]>([
    [
      'in due configs',
      (tenantId) => add({ tenantId, count: 10_000, host: 'full.example', inSeconds: -3600 }),
    ],
    [
      'in configs that wait for another try',
      (tenantId) => add({ tenantId, count: 10_000, host: 'dead.example', inSeconds: 600 }),
    ],
  ])('%s', async (_, flood) => {
    const tenantId = await add({ count: 8, host: 'full.example', inSeconds: -7200 });
    expect(await claim()).toEqual(Array(8).fill('full.example'));
    await add({ tenantId, count: 3, host: 'zebra.example' });
    await add({ tenantId, count: 1, host: 'able.example' });
    await add({ count: 2, host: 'other.example' });
    const before = await pagesRead();
    await flood(tenantId);
    const after = await pagesRead();
    expect(after).toBeLessThan(before + 200);
    expect((await claim()).toSorted()).toEqual([
      'able.example',
      'other.example',
      'other.example',
      ...Array<string>(3).fill('zebra.example'),
    ]);
  });
});

it('what is due of one tenant does not slow down claims for others, also before Postgres has statistics of it', async () => {
  await add({ count: 300, host: 'other.example' });
  await sql(stores, 'ANALYZE push_configs');
  const tenantId = await add({ count: 100, host: 'flood.example', inSeconds: -3600 });
  const before = await pagesRead();
  await add({ tenantId, count: 20_000, host: 'flood.example', inSeconds: -3600 });
  expect(await pagesRead()).toBeLessThan(before + 200);
  expect(await claim()).toEqual(expect.arrayContaining(Array(8).fill('other.example')));
});

it('a tenant goes to its next host when the oldest are more than their host may get', async () => {
  const tenantId = await add({ count: 100, host: 'many.example', inSeconds: -3600 });
  await add({ tenantId, count: 2, host: 'few.example' });
  expect((await claim()).toSorted()).toEqual([
    'few.example',
    'few.example',
    ...Array<string>(8).fill('many.example'),
  ]);
});

it('a config that another transaction has locked is left alone', async () => {
  const tenantId = await add({ count: 1, host: 'locked.example', inSeconds: -120 });
  await add({ count: 1, host: 'free.example' });
  await stores.database.inTenant(tenantId, async (transaction) => {
    await transaction.query({ text: 'SELECT FROM push_configs FOR NO KEY UPDATE' }, []);
    let claimed: string[] | undefined;
    void claim().then((hosts) => (claimed = hosts));
    const waits = `SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`;
    while (claimed === undefined && (await sql(stores, waits)).length === 0) await setImmediate();
    expect(claimed).toEqual(['free.example']);
  });
  expect(await claim()).toEqual(['locked.example']);
});

it('the oldest are first, whatever their host', async () => {
  const tenantId = randomUUID();
  for (let i = 0; i < 6; i++) await add({ tenantId, count: 1, host: `h${9 - i}.example`, inSeconds: i - 60 });
  expect(await claim({ limit: 2 })).toEqual(['h9.example', 'h8.example']);
  expect(await claim({ perTenant: 5 })).toEqual(['h7.example', 'h6.example', 'h5.example']);
});

it('the sweep finds the oldest of all tenants first', async () => {
  const tenants: string[] = [];
  for (const inSeconds of [-30, -60, -10])
    tenants.push(await add({ count: 1, host: 'a.example', inSeconds }));
  const tenantsOf = async (limit: number) =>
    (await deliveries.dueTasks(limit)).map(({ tenantId }) => tenantId).sort();
  expect(await tenantsOf(1)).toEqual([tenants[1]]);
  expect(await tenantsOf(2)).toEqual(tenants.slice(0, 2).sort());
});

it('configs that a process of the last release has made are one host to their first claim, which sets it', async () => {
  await add({ count: 50, host: '' });
  expect(await claim()).toHaveLength(8);
  const hosts = `SELECT host, count(*)::int AS count FROM push_configs GROUP BY host ORDER BY host`;
  expect(await sql(stores, hosts)).toEqual([
    { host: '', count: 42 },
    { host: 'old.example', count: 8 },
  ]);
});

it('due pushes of a suspended tenant wait, and no worker is notified', async () => {
  const id = randomUUID();
  await sql(stores, `INSERT INTO tenants (id, slug, suspended_at) VALUES ('${id}', '${id}', now())`);
  await add({ tenantId: id, count: 50, host: 'a.example', inSeconds: -3600 });
  const other = await add({ count: 1, host: 'b.example' });
  expect(await deliveries.dueTasks(5)).toEqual([{ tenantId: other, taskId: expect.any(String) }]);
  expect((await deliveries.count()).oldest).toBeLessThan(600);
  expect(await claim()).toEqual(['b.example']);
  expect(await deliveries.dueTasks(5)).toEqual([]);
  await sql(stores, `UPDATE tenants SET suspended_at = NULL WHERE id = '${id}'`);
  expect((await deliveries.count()).oldest).toBeGreaterThan(3000);
  expect(await deliveries.dueTasks(100)).toHaveLength(50);
  expect(await claim()).toHaveLength(8);
});
