import { randomUUID } from 'node:crypto';
import { newTask, openStores, sql, startTask, type Stores } from '../stores.fixture.js';

const LEASE_MS = 30_000;

let stores: Stores;

beforeEach(async () => {
  stores = await openStores();
});
afterEach(async () => stores.close());

/** As if the lease had run out. */
const expire = async (runId: string): Promise<void> => {
  await sql(stores, `UPDATE runs SET lease_expires_at = now() - interval '1 second' WHERE id = '${runId}'`);
};

const reclaim = async () => stores.runs.reclaimExpired(10, (await stores.runs.findWork(60_000)).at);

/** As if all pauses were over: the run is enqueued. */
const dispatchNow = async (tenantId: string): Promise<void> => {
  await sql(stores, `UPDATE runs SET not_before = now() - interval '1 ms' WHERE not_before IS NOT NULL`);
  expect(await stores.dispatch.dispatch([{ tenantId, slots: 1, maxInFlight: null }], 10)).toHaveLength(1);
};

/** Postgres stores times to the millisecond, and its clock may differ a little. */
const CLOCKS_MS = 50;

/** How long the run still has to wait, in seconds. */
const pause = async (runId: string): Promise<number> => {
  const wait = `extract(epoch FROM not_before - clock_timestamp())::float8 AS wait`;
  const [row] = (await sql(stores, `SELECT ${wait} FROM runs WHERE id = '${runId}'`)) as [{ wait: number }];
  return row.wait;
};

it('a run without a backoff waits all the same when it crashes again, and longer each time', async () => {
  const retry = { maxAttempts: 9, backoff: { initialMs: 0, factor: 1, maxMs: 0 } };
  const { tenantId, runId } = await startTask(stores, { ...newTask(), retry });
  await expire(runId);
  expect(await reclaim()).toHaveLength(1);
  for (const pauseMs of [1_000, 4_000, 16_000, 60_000, 60_000]) {
    await stores.runs.claim(tenantId, runId, 'w', LEASE_MS);
    await expire(runId);
    const since = performance.now();
    expect(await reclaim()).toEqual([]);
    const left = (await pause(runId)) * 1000;
    expect(left).toBeLessThanOrEqual(pauseMs);
    expect(left).toBeGreaterThan(pauseMs - (performance.now() - since) - CLOCKS_MS);
    await dispatchNow(tenantId);
  }
});

it.each([
  [3, [false, false, true]],
  [2, [false, true]],
  [9, [false, false, true, true]],
])('of %i attempts a run is a suspect when it has crashed: %j', async (maxAttempts, wanted) => {
  const retry = { maxAttempts, backoff: { initialMs: 0, factor: 1, maxMs: 0 } };
  const input = { ...newTask(), retry };
  const { tenantId, runId } = input;
  await stores.tasks.create(input);
  const found: boolean[] = [];
  for (const crashes of wanted.keys()) {
    if (crashes > 1) await dispatchNow(tenantId);
    found.push(await stores.runs.isSuspect(tenantId, runId));
    await stores.runs.claim(tenantId, runId, 'w', LEASE_MS);
    await expire(runId);
    await reclaim();
  }
  expect(found).toEqual(wanted);
  expect(await stores.runs.isSuspect(randomUUID(), runId)).toBe(false);
});

it('a postponed run is not claimed and gets a slot again afterwards', async () => {
  const input = newTask();
  await stores.tasks.create(input);
  await stores.runs.postpone(input.tenantId, input.runId, 60_000);
  expect(await pause(input.runId)).toBeGreaterThan(30);
  expect(await stores.runs.claim(input.tenantId, input.runId, 'w', LEASE_MS)).toBeUndefined();
  await dispatchNow(input.tenantId);
  expect(await stores.runs.claim(input.tenantId, input.runId, 'w', LEASE_MS)).toMatchObject({ attempt: 1 });
});
