import { randomUUID } from 'node:crypto';
import {
  dispatchNow,
  expire,
  newTask,
  openStores,
  reclaim,
  sql,
  startTask,
  type Stores,
} from '../stores.fixture.js';

const LEASE_MS = 30_000;

let stores: Stores;

beforeEach(async () => {
  stores = await openStores();
});
afterEach(async () => stores.close());

/** As if the lease had run out. */
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
  await expire(stores, runId);
  expect(await reclaim(stores)).toHaveLength(1);
  for (const pauseMs of [1_000, 4_000, 16_000, 60_000, 60_000]) {
    await stores.runs.claim(tenantId, runId, 'w', LEASE_MS);
    await expire(stores, runId);
    const since = performance.now();
    expect(await reclaim(stores)).toEqual([]);
    const left = (await pause(runId)) * 1000;
    expect(left).toBeLessThanOrEqual(pauseMs);
    expect(left).toBeGreaterThan(pauseMs - (performance.now() - since) - CLOCKS_MS);
    await dispatchNow(stores, tenantId);
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
    if (crashes > 1) await dispatchNow(stores, tenantId);
    found.push(await stores.runs.isSuspect(tenantId, runId));
    await stores.runs.claim(tenantId, runId, 'w', LEASE_MS);
    await expire(stores, runId);
    await reclaim(stores);
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
  await dispatchNow(stores, input.tenantId);
  expect(await stores.runs.claim(input.tenantId, input.runId, 'w', LEASE_MS)).toMatchObject({ attempt: 1 });
});
