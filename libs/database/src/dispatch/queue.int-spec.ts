import { randomUUID } from 'node:crypto';
import { openStores, sql, startTask, type Stores } from '../stores.fixture.js';
import { MAX_COUNTED, QueueStore, READ_QUEUE, type RunClass, type RunsOfClass } from './queue.store.js';

const FLOOD = 100_000;
const SLICE = 10_000;
const MINUTE_S = 60;

let stores: Stores;
let queue: QueueStore;
beforeAll(async () => {
  stores = await openStores();
  queue = new QueueStore(stores.database);
});
beforeEach(async () => void (await sql(stores, 'TRUNCATE runs, tenants, dead_letters CASCADE')));
afterAll(() => stores.close());

/** A tenant with runs, each accepted a second before the one that was made before it. Answers with the id of the tenant. */
async function fill(slug: string, runs: number, ageSeconds: number, columns: object = {}): Promise<string> {
  const tenantId = randomUUID();
  await sql(
    stores,
    `INSERT INTO tenants (id, slug) VALUES ('${tenantId}', '${slug}') ON CONFLICT (slug) DO NOTHING`,
  );
  const { state, enqueued_at, not_before } = {
    state: `'queued'`,
    enqueued_at: 'NULL',
    not_before: 'NULL',
    ...columns,
  };
  // In slices: a statement has 15 seconds.
  for (let first = 0; first < runs; first += SLICE) {
    const last = Math.min(first + SLICE, runs) - 1;
    await sql(
      stores,
      `INSERT INTO runs (tenant_id, id, task_id, state, start_sequence, enqueued_at, not_before, created_at)
       SELECT t.id, gen_random_uuid(), gen_random_uuid(), ${state}, 1, ${enqueued_at}, ${not_before},
         now() - interval '1 second' * (${ageSeconds} + i) FROM tenants t, generate_series(${first}, ${last}) i
       WHERE t.slug = '${slug}'`,
    );
  }
  return tenantId;
}

async function read(): Promise<Record<RunClass, Omit<RunsOfClass, 'class'>>> {
  const { classes } = await queue.read(MINUTE_S * 1_000);
  return Object.fromEntries(classes.map(({ class: name, ...rest }) => [name, rest])) as never;
}

it('has each run in its class, and the oldest of each', async () => {
  const inAnHour = `now() + interval '1 hour'`;
  await fill('shop', 3, 10);
  await fill('shop', 2, 500, { not_before: inAnHour });
  await fill('shop', 4, 100, { enqueued_at: 'now()' });
  await fill('bank', 5, 2_000, { state: `'running'`, enqueued_at: 'now()' });
  await fill('bank', 6, 3_000, { state: `'suspended'` });
  await fill('bank', 7, 9_000, { state: `'succeeded'` });
  const classes = await read();
  const seen = Object.entries(classes).map(([name, { runs, more, oldestSeconds }]) => [
    name,
    runs,
    more,
    Math.floor(oldestSeconds / 10),
  ]);
  expect(seen).toEqual([
    ['waiting', 3, false, 1],
    ['backoff', 2, false, 50],
    ['queued', 4, false, 10],
    ['running', 5, false, 200],
    ['suspended', 6, false, 300],
  ]);
  const { oldestWaiting } = await queue.read(MINUTE_S * 1_000);
  expect(oldestWaiting).toMatchObject({ tenant: 'shop' });
  expect(oldestWaiting!.acceptedAt).toEqual(classes.backoff.oldestAt);
});

it('counts the workers with a recent heartbeat, and their slots', async () => {
  for (const [id, concurrency] of [
    ['live', 10],
    ['other', 5],
    ['silent', 7],
  ] as const)
    await stores.workers.seen({ id, host: 'h', pid: 1, concurrency }, MINUTE_S * 1_000);
  await sql(stores, `UPDATE workers SET seen_at = now() - interval '61 seconds' WHERE id = 'silent'`);
  expect((await queue.read(MINUTE_S * 1_000)).slots).toBe(15);
  expect((await stores.workers.load(MINUTE_S * 1_000)).liveWorkers).toBe(2);
});

it('has the age of the oldest run that no worker has, of any tenant', async () => {
  const age = async () => Math.floor((await stores.workers.load(MINUTE_S * 1_000)).oldestWaitingSeconds / 10);
  for (const slug of ['shop', 'bank']) {
    await fill(slug, 1, 9_000, { state: `'succeeded'` });
    await fill(slug, 1, 8_000, { state: `'running'`, enqueued_at: 'now()' });
  }
  expect(await age()).toBe(0);
  await fill('shop', 1, 10);
  await fill('bank', 2, 300);
  expect(await age()).toBe(30);
  await fill('shop', 1, 500, { enqueued_at: 'now()' });
  expect(await age()).toBe(50);
});

it('counts dead letters that are not redelivered, and receivers of pushes that were given up', async () => {
  const { tenantId, taskId } = await startTask(stores);
  for (const redelivered of ['NULL', 'now()'])
    await sql(
      stores,
      `INSERT INTO dead_letters (tenant_id, run_id, task_id, agent_id, reason, attempts, redelivered_at)
       VALUES ('${tenantId}', gen_random_uuid(), '${taskId}', 'echo', 'given up', 3, ${redelivered})`,
    );
  for (const state of ['active', 'dead', 'ended'])
    await sql(
      stores,
      `INSERT INTO push_configs (tenant_id, task_id, id, url, protocol, state, delivered_sequence, head_sequence)
       VALUES ('${tenantId}', '${taskId}', '${state}', 'https://receiver.example', '1.0', '${state}', 2, 2)`,
    );
  expect(await queue.read(1)).toMatchObject({ deadLetters: 1, deadPushes: 1 });
});

it('has nothing when there is nothing', async () => {
  expect(await read()).toMatchObject({
    waiting: { runs: 0, more: false, oldestAt: null, oldestSeconds: 0 },
    suspended: { runs: 0, more: false, oldestAt: null },
  });
  expect((await queue.read(1)).oldestWaiting).toBeNull();
});

it('reads some of 100,000 waiting runs, and finds the oldest of all tenants in spite of that', async () => {
  await fill('flood', FLOOD, 10);
  await fill('late', 1, FLOOD * 2);
  await fill('other', 20, 5);
  await sql(stores, 'ANALYZE runs');
  const { waiting, backoff, running } = await read();
  expect(waiting).toMatchObject({ runs: MAX_COUNTED, more: true });
  expect(Math.floor(waiting.oldestSeconds / 1_000)).toBe((FLOOD * 2) / 1_000);
  expect([backoff.runs, backoff.more, running.more]).toEqual([0, true, false]);
  expect((await queue.read(1)).oldestWaiting).toMatchObject({ tenant: 'late' });
  const explained = await stores.database.systemQuery<{ 'QUERY PLAN': [object] }>(
    { text: `EXPLAIN (ANALYZE, FORMAT JSON) ${READ_QUEUE.text}` },
    [],
  );
  const plan = JSON.stringify(explained[0]?.['QUERY PLAN']);
  const rows = [...plan.matchAll(/"(?:Actual Rows|Rows Removed by Filter)":([\d.]+)/g)];
  expect(Math.max(...rows.map(([, count]) => Number(count)))).toBeLessThan(MAX_COUNTED + 100);
});
