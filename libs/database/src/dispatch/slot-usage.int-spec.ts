import { randomUUID } from 'node:crypto';
import { Client } from 'pg';
import type { RunQuota } from '../index.js';
import { endTurn, newTask, openStores, sql, startTask, type Stores } from '../stores.fixture.js';
import { READ_SLOT_USAGE } from './dispatch.store.js';

const LIVE_MS = 60_000;
const NOWHERE: RunQuota = { maxInFlight: 0, maxWaiting: null, exact: false };

let stores: Stores;
beforeEach(async () => {
  stores = await openStores(16);
});
afterEach(async () => stores.close());

/** New tasks of a tenant, one after another. */
async function accept(tenantId: string, count: number, quota: RunQuota = NOWHERE): Promise<void> {
  for (let i = 0; i < count; i++) await stores.tasks.create({ ...newTask({ tenantId }), quota });
}

describe('who sweeps', () => {
  const rank = (id: string, concurrency = 1) =>
    stores.workers.seen({ id, host: 'h', pid: 1, concurrency }, 60_000);
  const seen = async (id: string): Promise<boolean> => (await rank(id)).isEldest;

  it('is the eldest worker that lives', async () => {
    expect(await seen('first')).toBe(true);
    expect(await seen('second')).toBe(false);
    expect(await seen('first')).toBe(true);
    // Silent for too long.
    await sql(stores, `UPDATE workers SET seen_at = now() - interval '61 seconds' WHERE id = 'first'`);
    expect(await seen('second')).toBe(true);
    // It lives after all.
    expect(await seen('first')).toBe(true);
    expect(await seen('second')).toBe(false);
    await stores.workers.remove('first');
    expect(await seen('second')).toBe(true);
  });
});

it('a worker learns how many slots the others have, and those that are older', async () => {
  const seen = (id: string, concurrency: number) =>
    stores.workers.seen({ id, host: 'h', pid: 1, concurrency }, 60_000);
  expect(await seen('first', 8)).toEqual({ isEldest: true, otherSlots: 0, elderSlots: 0 });
  expect(await seen('second', 4)).toEqual({ isEldest: false, otherSlots: 8, elderSlots: 8 });
  expect(await seen('third', 2)).toEqual({ isEldest: false, otherSlots: 12, elderSlots: 12 });
  expect(await seen('second', 4)).toEqual({ isEldest: false, otherSlots: 10, elderSlots: 8 });
  await sql(stores, `UPDATE workers SET seen_at = now() - interval '61 seconds' WHERE id = 'first'`);
  expect(await seen('third', 2)).toEqual({ isEldest: false, otherSlots: 4, elderSlots: 4 });
});

it('a tenant learns which agents live workers could not load, each once, and of no others that are not for it', async () => {
  const [tenantId, slug] = [randomUUID(), `t-${randomUUID()}`];
  await sql(stores, `INSERT INTO tenants (id, slug) VALUES ('${tenantId}', '${slug}')`);
  const failure = (file: string, line: number | null, tenants: string[] | null) => ({
    slug: 'desk',
    file,
    line,
    reason: 'unexpected token',
    tenants,
  });
  const [first, second, named, known] = [
    failure('a.ts', 3, null),
    failure('a.ts', 12, null),
    failure('b.ts', null, [slug]),
    failure('c.ts', null, [tenantId, 'other']),
  ];
  const worker = { host: 'h', pid: 1, concurrency: 1 };
  const hidden = [failure('d.ts', null, ['other']), failure('e.ts', null, [])];
  await stores.workers.reportFailures({ ...worker, id: 'f1' }, [known, second, ...hidden]);
  await stores.workers.reportFailures({ ...worker, id: 'f2' }, [named, second, first]);
  await stores.workers.reportFailures({ ...worker, id: 'silent' }, [failure('f.ts', null, null)]);
  await sql(stores, `UPDATE workers SET seen_at = now() - interval '2 minutes' WHERE id = 'silent'`);
  expect(await stores.workers.loadFailures(tenantId, 60_000)).toEqual([first, second, named, known]);
});

it('workers are listed by their start, each with the runs that it executes', async () => {
  for (const id of ['worker', 'idle'])
    await stores.workers.seen({ id, host: 'h', pid: 1, concurrency: 4 }, LIVE_MS);
  await startTask(stores);
  await startTask(stores);
  await sql(stores, `UPDATE workers SET seen_at = now() - interval '61 seconds' WHERE id = 'idle'`);
  expect(await stores.workers.list(LIVE_MS)).toMatchObject([
    { id: 'worker', running: 2, isAlive: true },
    { id: 'idle', running: 0, isAlive: false },
  ]);
});

describe('a look', () => {
  it('sees the slots of live workers, the runs in flight and who waits', async () => {
    await stores.workers.seen({ id: 'a', host: 'h', pid: 1, concurrency: 10, reservedSlots: 2 }, 1000);
    await stores.workers.seen({ id: 'b', host: 'h', pid: 2, concurrency: 5 }, 1000);
    await stores.workers.seen({ id: 'dead', host: 'h', pid: 3, concurrency: 7 }, 1000);
    await sql(stores, `UPDATE workers SET seen_at = now() - interval '61 seconds' WHERE id = 'dead'`);
    const [one, two] = [randomUUID(), randomUUID()];
    await startTask(stores, newTask({ tenantId: one }));
    await accept(one, 3, { maxInFlight: 3, maxWaiting: null, exact: false });
    await accept(two, 2);
    await sql(stores, `INSERT INTO tenants (id, slug, limits) VALUES ('${two}', 'two', '{"weight": 3}')`);
    expect(await stores.dispatch.readSlotUsage(LIVE_MS)).toEqual({
      workerSlots: 15,
      reservedSlots: 2,
      workers: [],
      inFlight: new Map([[one, 3]]), // prettier-ignore
      waiting: new Map<string, object>([
        [one, {}],
        [two, { weight: 3 }],
      ]),
    });
    await stores.workers.remove('a');
    expect((await stores.dispatch.readSlotUsage(LIVE_MS)).workerSlots).toBe(5);
  });

  it('sees for which workers runs may be claimed: not for silent ones, nor for those of release 0.1.0, which have no version', async () => {
    const workers = async () => [...(await stores.dispatch.readSlotUsage(LIVE_MS)).workers].sort();
    const worker = { host: 'h', pid: 1, concurrency: 10, version: '0.2.0' };
    for (const id of ['one', 'silent', 'two']) await stores.workers.seen({ ...worker, id }, 1000);
    await stores.workers.seen({ id: 'old', host: 'h', pid: 2, concurrency: 5 }, 1000);
    expect(await workers()).toEqual(['one', 'silent', 'two']);
    await sql(stores, `UPDATE workers SET seen_at = now() - interval '16 seconds' WHERE id = 'silent'`);
    expect(await workers()).toEqual(['one', 'two']);
  });

  it('sees every tenant that waits, in turns if they are many', async () => {
    const tenants = Array.from({ length: 300 }, () => randomUUID());
    await Promise.all(tenants.map((tenantId) => accept(tenantId, 1)));
    const looks = [
      await stores.dispatch.readSlotUsage(LIVE_MS),
      await stores.dispatch.readSlotUsage(LIVE_MS),
    ];
    const seen = looks.flatMap(({ waiting }) => [...waiting.keys()]);
    expect(seen.sort()).toEqual(tenants.sort());
    expect((await stores.dispatch.readSlotUsage(LIVE_MS)).waiting.size).toBeGreaterThan(200);
  });

  it('does not count the runs of a tenant that floods', async () => {
    const tenantId = randomUUID();
    await sql(
      stores,
      `INSERT INTO runs (tenant_id, id, task_id, state, start_sequence, enqueued_at)
       SELECT '${tenantId}', gen_random_uuid(), gen_random_uuid(), 'queued', 1, NULL FROM generate_series(1, 10000)`,
    );
    expect([...(await stores.dispatch.readSlotUsage(LIVE_MS)).waiting.keys()]).toEqual([tenantId]);
    const explained = await stores.database.systemQuery<{ 'QUERY PLAN': [object] }>(
      { text: `EXPLAIN (ANALYZE, FORMAT JSON) ${READ_SLOT_USAGE.text}` },
      [LIVE_MS, '00000000-0000-0000-0000-000000000000', 256],
    );
    const plan = JSON.stringify(explained[0]?.['QUERY PLAN']);
    const rows = [...plan.matchAll(/"Actual Rows":([\d.]+)/g)].map(([, count]) => Number(count));
    expect(Math.max(...rows)).toBeLessThan(10);
  });
});

it('nothing on the way of a run reads a whole table, even while plans are made for small ones', async () => {
  const client = new Client({ connectionString: stores.url });
  await client.connect();
  const scans = async (): Promise<unknown> => {
    const { rows } = await client.query(
      `SELECT sum(seq_scan)::int AS n FROM pg_stat_user_tables WHERE relname IN ('runs', 'tasks')`,
    );
    return (rows as { n: number }[])[0]?.n;
  };
  const way = async (): Promise<void> => {
    const tenantId = randomUUID();
    await accept(tenantId, 2, { maxInFlight: 1, maxWaiting: 5, exact: true });
    await stores.dispatch.readSlotUsage(LIVE_MS);
    for (const run of await stores.dispatch.dispatch([{ tenantId, slots: 5, maxInFlight: 9 }], 1_000)) {
      const claimed = await stores.runs.claim(tenantId, run.runId, 'w', 60_000);
      await endTurn(stores, claimed!, 2);
    }
    await stores.runs.takeStaleQueued(60_000, 10);
  };
  try {
    await way();
    await client.query('VACUUM ANALYZE');
    const before = await scans();
    for (let i = 0; i < 20; i++) await way();
    // A connection reports what it has counted when it ends.
    await stores.database.close();
    expect(await scans()).toBe(before);
  } finally {
    await client.end();
  }
});
