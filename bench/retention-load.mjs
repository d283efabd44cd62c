// The latency that callers see while retention deletes a million events.
import { message } from './caller.mjs';
import { quantile } from './load.mjs';

const CALLERS = 16;

/** Blocking sends by sixteen callers until `isOver`; the milliseconds of each, sorted. */
async function sends(caller, isOver) {
  const times = [];
  const one = async () => {
    while (!isOver()) {
      const start = performance.now();
      await caller.call('SendMessage', message('hello'));
      times.push(performance.now() - start);
    }
  };
  await Promise.all(Array.from({ length: CALLERS }, one));
  return times.sort((a, b) => a - b);
}

const keep = (client, tenants, days) =>
  client.query('UPDATE tenants SET limits = $1 WHERE id = ANY($2::uuid[])', [
    JSON.stringify({ retentionDays: days }),
    tenants,
  ]);

const rows = async (client, text, values) => (await client.query(text, values)).rows;

async function left(client, tenants) {
  const [{ tasks, logs }] = await rows(
    client,
    `SELECT (SELECT count(*)::int FROM tasks WHERE tenant_id = ANY($1::uuid[]) AND state IN (3, 4)) AS tasks,
       (SELECT count(*)::int FROM task_tombstones WHERE purged_to < last_sequence) AS logs`,
    [tenants],
  );
  return tasks + logs;
}

const size = async (client) =>
  rows(
    client,
    `SELECT pg_size_pretty(pg_table_size('task_events')) AS heap, pg_size_pretty(pg_indexes_size('task_events')) AS indexes,
       n_live_tup AS live, n_dead_tup AS dead, autovacuum_count AS autovacuums
     FROM pg_stat_user_tables WHERE relname = 'task_events'`,
  );

/** Deletes the tasks of these tenants. Without the sweep, with it until all is deleted, and without it once more. */
export async function measureRetention({ caller, client, events }, tenants, seconds) {
  const [{ count }] = await rows(
    client,
    'SELECT count(*)::int AS count FROM tasks WHERE tenant_id = ANY($1::uuid[]) AND state IN (3, 4)',
    [tenants],
  );
  const calm = () => {
    const end = performance.now() + seconds * 1000;
    return sends(caller, () => performance.now() > end);
  };
  const before = await calm();
  const sizeBefore = await size(client);
  await keep(client, tenants, 0.001);
  const start = performance.now();
  let isDone = false;
  const watching = (async () => {
    while ((await left(client, tenants)) > 0) await new Promise((resolve) => setTimeout(resolve, 250));
    isDone = true;
  })();
  const during = await sends(caller, () => isDone);
  await watching;
  const took = (performance.now() - start) / 1000;
  const after = await calm();
  await keep(client, tenants, null);
  const shown = (times, took) => ({
    'sends/s': Math.round(times.length / took),
    'p50 ms': quantile(times, 0.5).toFixed(1),
    'p99 ms': quantile(times, 0.99).toFixed(1),
    'max ms': times.at(-1).toFixed(0),
  });
  console.log(
    `\n${count.toLocaleString('en')} tasks with ${(count * events).toLocaleString('en')} events were deleted in ${took.toFixed(0)} s ` +
      `(${Math.round((count * events) / took).toLocaleString('en')} events/s) beside ${CALLERS} callers:\n`,
  );
  console.table({
    before: shown(before, seconds),
    'while they are deleted': shown(during, took),
    afterwards: shown(after, seconds),
  });
  await client.query('VACUUM (ANALYZE) task_events');
  console.table([...sizeBefore, ...(await size(client))]);
}
