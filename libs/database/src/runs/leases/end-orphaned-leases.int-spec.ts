import { hasEnded } from '../../connection/session-name.js';
import { Database } from '../../index.js';
import { type Stores, beat, openStores, sql, startTask } from '../../stores.fixture.js';
import { findWork } from '../find-work.js';
import { endOrphanedLeases } from './end-orphaned-leases.js';

// The lease of `startTask`.
const LEASE_MS = 30_000;
const STALE_MS = 60_000;
const worker = { id: 'worker', host: 'h', pid: 1, concurrency: 10 };

let stores: Stores;
const open: Database[] = [];

beforeEach(async () => {
  stores = await openStores();
});
afterEach(async () => {
  await Promise.all(open.splice(0).map((database) => database.close()));
  await stores.close();
});

/** A connection of its own, as the thread has that extends leases, and its name. */
async function connect(): Promise<{ session: string | undefined; close: () => Promise<void> }> {
  let session: string | undefined;
  const database = new Database({
    url: stores.url,
    poolSize: 1,
    keepsIdle: true,
    onSession: (name) => (session = name),
  });
  open.push(database);
  await database.ping();
  return { session, close: () => database.close() };
}

/** Resolves when Postgres has no such session any more. */
async function ended(session: string | undefined): Promise<void> {
  const [pid] = (session ?? '').split('/');
  while ((await sql(stores, `SELECT FROM pg_stat_activity WHERE pid = ${pid}`)).length > 0);
}

/** A run whose worker has lost its connection. */
async function startOrphan() {
  const run = await startTask(stores);
  const { session, close } = await connect();
  await stores.workers.seen({ ...worker, session }, 1000);
  await close();
  await ended(session);
  return run;
}

const orphans = async (restMs: number) => findWork(stores.database, STALE_MS, restMs);

it('finds the runs of a worker whose connection has ended, long before their leases end', async () => {
  const run = await startTask(stores);
  const { session, close } = await connect();
  await stores.workers.seen({ ...worker, session }, 1000);
  expect((await orphans(LEASE_MS)).orphanedRuns).toBe(false);
  await close();
  await ended(session);
  const found = await orphans(LEASE_MS);
  expect(found).toMatchObject({ orphanedRuns: true, expiredRuns: false });
  expect(await endOrphanedLeases(stores.database, LEASE_MS, found.at)).toEqual(['worker']);
  const reclaimed = await stores.runs.reclaimExpired(10, found.at);
  expect(reclaimed.map(({ runId }) => runId)).toEqual([run.runId]);
});

it('gives the worker time to connect again, and returns the end of that time', async () => {
  await startOrphan();
  const restMs = LEASE_MS - 10_000;
  const found = await orphans(restMs);
  expect(found.orphanedRuns).toBe(false);
  expect(found.nextMs).toBeGreaterThan(0);
  expect(found.nextMs).toBeLessThanOrEqual(10_000);
  expect(await endOrphanedLeases(stores.database, restMs, found.at)).toEqual([]);
});

it('leaves a run whose worker has extended its lease meanwhile', async () => {
  const run = await startOrphan();
  const { at } = await orphans(LEASE_MS);
  await endOrphanedLeases(stores.database, LEASE_MS, at);
  expect(await beat(stores, [run])).toEqual([]);
  expect(await stores.runs.reclaimExpired(10, at)).toEqual([]);
});

it('leaves a run whose worker extends its lease at this moment, and does not wait for it', async () => {
  const run = await startOrphan();
  const { at } = await orphans(LEASE_MS);
  const waiting = `SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`;
  await stores.database.inSystem(async (transaction) => {
    const extend = `UPDATE runs SET lease_expires_at = now() + interval '1 hour' WHERE id = $1`;
    await transaction.query({ text: extend }, [run.runId]);
    let workers: string[] | undefined;
    void endOrphanedLeases(stores.database, LEASE_MS, at).then((found) => (workers = found));
    while (workers === undefined && (await sql(stores, waiting)).length === 0);
    expect(workers).toEqual([]);
  });
});

it('leaves the lease of a worker that is connected', async () => {
  await startTask(stores);
  const dead = await connect();
  const live = await connect();
  await stores.workers.seen({ ...worker, session: live.session }, 1000);
  await stores.workers.seen({ ...worker, id: 'dead', session: dead.session }, 1000);
  await dead.close();
  await ended(dead.session);
  const { at } = await orphans(LEASE_MS);
  expect(await endOrphanedLeases(stores.database, LEASE_MS, at)).toEqual([]);
  await live.close();
});

it('waits for the lease of a worker without a known session', async () => {
  await startTask(stores);
  await stores.workers.seen(worker, 1000);
  expect((await orphans(LEASE_MS)).orphanedRuns).toBe(false);
});

it('waits for the lease of a worker whose last heartbeat is older than a minute', async () => {
  await startOrphan();
  await sql(stores, `UPDATE workers SET seen_at = now() - interval '61 seconds'`);
  const { orphanedRuns, at } = await orphans(LEASE_MS);
  expect([orphanedRuns, await endOrphanedLeases(stores.database, LEASE_MS, at)]).toEqual([false, []]);
});

it('takes a session that it may not look into for a live one', async () => {
  // As Postgres shows the sessions of other roles: without their start.
  const others = `WITH pg_stat_activity AS (SELECT 7 AS pid, NULL::timestamptz AS backend_start)`;
  const isEnded = async (name: string) => sql(stores, `${others} SELECT ${hasEnded(`'${name}'`)} AS ended`);
  expect(await isEnded('7/1')).toEqual([{ ended: false }]);
  expect(await isEnded('8/1')).toEqual([{ ended: true }]);
});

it('makes the next worker the leader as soon as the connection of the eldest has ended', async () => {
  const { session, close } = await connect();
  await stores.workers.seen({ ...worker, session }, 60_000);
  const younger = { ...worker, id: 'younger' };
  expect((await stores.workers.seen(younger, 60_000)).isEldest).toBe(false);
  await close();
  await ended(session);
  expect((await stores.workers.seen(younger, 60_000)).isEldest).toBe(true);
});
