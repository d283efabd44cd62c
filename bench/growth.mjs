// npm run bench:growth: what tasks and events take on disk, and whether Baton stays as fast when there are many. Two Batons run
// side by side, one almost empty and one filled in compressed time, and are measured in turns. Then both delete old tasks.
// EVENTS (10000000), in tasks of PER_TASK (50), and one task of HUGE (10000); EXPIRING (200000) of them are deleted; CHUNK (full): or short, see fill.mjs;
// ROUNDS (5), CALLS per round (20), SENDS (2000) for the figures on disk, KEEP_FREE_GB (10): of the disk.
import { tmpdir } from 'node:os';
import { statfsSync } from 'node:fs';
import { Caller } from './caller.mjs';
import { connect, fillHuge, fillTenant, tenantsOf } from './fill.mjs';
import { burst } from './load.mjs';
import { numberSetting } from './number-setting.mjs';
import { measureRetention } from './retention-load.mjs';
import { circumstances } from './report.mjs';
import { startBaton } from './servers.mjs';
import { compared, inTurns } from './single-calls.mjs';

const EVENTS = numberSetting('EVENTS', 10_000_000);
const PER_TASK = numberSetting('PER_TASK', 50);
const EXPIRING = numberSetting('EXPIRING', 200_000);
const ROUNDS = numberSetting('ROUNDS', 5);
const CALLS = numberSetting('CALLS', 20);
const SENDS = numberSetting('SENDS', 2_000);
const KEEP_FREE = numberSetting('KEEP_FREE_GB', 10) * 1024 ** 3;
const CHUNK = process.env.CHUNK ?? 'full';
const HUGE = numberSetting('HUGE', 10_000);
const shown = (count) => Math.round(count).toLocaleString('en');

class DiskFull extends Error {}

function assertRoom() {
  const { bavail, bsize } = statfsSync(tmpdir());
  if (bavail * bsize < KEEP_FREE) throw new DiskFull();
}

/** A Baton with so many events: three quarters are the caller's, and EXPIRING more are of a tenant of its own. */
async function prepare(name, events) {
  const baton = await startBaton({ workers: 1, env: { RETENTION_SWEEP_MS: '1000' } });
  const client = await connect(baton.databaseUrl, baton.home);
  const [demo, expiring, ...others] = await tenantsOf(client, 5);
  const begun = performance.now();
  const fill = async (tenant, count, note = () => undefined) =>
    fillTenant(client, tenant, Math.ceil(count / PER_TASK), PER_TASK, note, CHUNK);
  await fill(expiring, EXPIRING);
  const hugeTask = await fillHuge(client, demo, HUGE, () => undefined);
  try {
    for (const tenant of others) await fill(tenant, (events * 0.25) / others.length, assertRoom);
    await fill(demo, events * 0.75, (done) => {
      const seconds = shown((performance.now() - begun) / 1000);
      process.stderr.write(`${name}: ${shown(done)} events of the caller after ${seconds} s\n`);
      assertRoom();
    });
  } catch (error) {
    if (!(error instanceof DiskFull)) throw error;
    process.stderr.write(`${name}: stopped, because KEEP_FREE_GB of the disk stay free\n`);
  }
  const filled = (performance.now() - begun) / 1000;
  await client.query('VACUUM (ANALYZE)');
  const { rows } = await client.query('SELECT sum(last_sequence)::float AS events FROM tasks');
  const vacuumed = (performance.now() - begun) / 1000 - filled;
  process.stderr.write(`${name}: filled in ${shown(filled)} s, vacuumed in ${shown(vacuumed)} s\n`);
  const caller = new Caller(baton.url, baton.token);
  return {
    name,
    baton,
    client,
    caller,
    demo,
    expiring,
    events: PER_TASK,
    hugeTask,
    huge: HUGE,
    stored: rows[0].events,
  };
}

/** Bytes of each table that has rows, with its indexes. */
async function sizes(client) {
  const { rows } = await client.query(
    `SELECT c.relname AS name, pg_table_size(c.oid)::float AS heap, pg_indexes_size(c.oid)::float AS indexes
     FROM pg_class c WHERE c.relkind IN ('r', 'p') AND c.relnamespace = 'public'::regnamespace ORDER BY 2 DESC`,
  );
  return new Map(rows.map(({ name, heap, indexes }) => [name, { heap, indexes }]));
}

/** What `count` units of `work` add to each table, and to the log of writes, in bytes for each. */
async function added(client, count, work) {
  const wal = async () =>
    (await client.query(`SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::float AS bytes`)).rows[0].bytes;
  await client.query('VACUUM');
  await client.query('CHECKPOINT').catch(() => undefined); // Only where the role may.
  const [before, written] = [await sizes(client), await wal()];
  await work();
  const end = await wal();
  const after = await sizes(client);
  const rows = [...after].flatMap(([name, { heap, indexes }]) => {
    const old = before.get(name);
    const row = {
      heap: Math.round((heap - old.heap) / count),
      indexes: Math.round((indexes - old.indexes) / count),
    };
    return row.heap + row.indexes > 0 ? [[name, row]] : [];
  });
  const sum = (kind) => rows.reduce((total, [, row]) => total + row[kind], 0);
  return Object.fromEntries([
    ...rows,
    ['sum', { heap: sum('heap'), indexes: sum('indexes') }],
    ['log of writes', { heap: Math.round((end - written) / count) }],
  ]);
}

/** Milliseconds from the acceptance of a task to its claim, of the newest tasks that were sent. */
async function claims({ client, demo }) {
  const { rows } = await client.query(
    `SELECT percentile_cont(ARRAY[0.5, 0.99]) WITHIN GROUP (ORDER BY extract(epoch FROM c.created_at - t.created_at) * 1000) AS ms
     FROM (SELECT tenant_id, id, created_at FROM tasks WHERE tenant_id = $1 AND state = 3 ORDER BY status_at DESC, id DESC LIMIT $2) t
     JOIN task_events c ON c.tenant_id = t.tenant_id AND c.task_id = t.id AND coalesce(c.first_sequence, c.sequence) = 2`,
    [demo, ROUNDS * CALLS],
  );
  const [p50, p99] = rows[0].ms.map((value) => value.toFixed(0));
  return { 'accepted → claimed, p50 ms': p50, 'p99 ms': p99 };
}

const inParallel = (count, call) => {
  let left = count;
  return burst(async () => {
    while (left-- > 0) await call();
    return 0;
  }, 32);
};

const sides = [];
try {
  sides.push(await prepare('almost empty', 25_000), await prepare('full', EVENTS));
  const [small, full] = sides;
  console.log(circumstances(`${shown(full.stored)} events in tasks of ${PER_TASK} (${CHUNK}).`));
  const { target } = small.baton;
  console.log('Bytes that a task with a short answer adds:');
  console.table(await added(small.client, SENDS, () => inParallel(SENDS, () => target.send('hello'))));
  console.log('Bytes that an event of a stream adds (with its share of a task of 200 chunks):');
  const streams = Math.ceil(SENDS / 20);
  console.table(
    await added(small.client, streams * 200, () => inParallel(streams, () => target.stream(200))),
  );
  console.log('The full database, in MB:');
  const mega = (bytes) => Math.round(bytes / 1e6);
  const large = [...(await sizes(full.client))].filter(([, { heap }]) => heap > 1e6);
  console.table(
    Object.fromEntries(
      large.map(([name, { heap, indexes }]) => [name, { heap: mega(heap), indexes: mega(indexes) }]),
    ),
  );
  const results = await inTurns(sides, ROUNDS, CALLS);
  console.log(`p50 in ms, median of ${ROUNDS} rounds of ${CALLS} calls (min–max):`);
  console.table(compared(results));
  console.table({ 'almost empty': await claims(small), full: await claims(full) });
  for (const side of sides) {
    console.log(`\n${side.name}:`);
    await measureRetention(side, [side.expiring], numberSetting('SECONDS', 10));
  }
} finally {
  for (const { baton, client, caller } of sides) {
    caller.close();
    await client.end().catch(() => undefined);
    await baton.stop();
  }
}
