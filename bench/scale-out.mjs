// npm run bench:scale-out: what more processes bring, and what they cost. Agents that wait 100 ms on 1 to 8 workers; streams on
// 1 to 4 APIs. Prints the tables of docs/operating/capacity.md.
// ROUNDS (3), SECONDS (8), WORKER_COUNTS (1,2,4,8) and API_COUNTS (1,2,4): the sizes.
// CONCURRENCY (10): runs of a worker at one time. Few, so that the workers are what a run waits for.
import { setTimeout as sleep } from 'node:timers/promises';
import { startCluster } from './cluster.mjs';
import { Counters, perUnit } from './counters.mjs';
import { quantile, together } from './load.mjs';
import { numberSetting } from './number-setting.mjs';
import { circumstances, median, printTable } from './report.mjs';

const list = (name, fallback) => (process.env[name] ?? fallback).split(',').map(Number);
const ROUNDS = numberSetting('ROUNDS', 3);
const SECONDS = numberSetting('SECONDS', 8);
const CONCURRENCY = numberSetting('CONCURRENCY', 10);
const CHUNKS = 20;
const WAIT_MS = 100;
const STREAM_CLIENTS = 64;
const IDLE_MS = 20_000;
const WARM_UP_SECONDS = 20;
const CPU = ['CPU ms: APIs', 'workers', 'Postgres', 'Redis'];

console.log(circumstances(`${ROUNDS} rounds of ${SECONDS} s: median (min–max).`));
const workers = [];
for (const count of list('WORKER_COUNTS', '1,2,4,8')) workers.push(await measureWorkers(count));
printTable(
  `Agents that wait ${WAIT_MS} ms: one API, ${CONCURRENCY} runs a worker, twice as many clients as that`,
  ['workers', 'sends/s', 'most possible', 'until claimed, half loaded: p50 ms', 'p99 ms', ...CPU],
  workers.map(({ count, rate, most, claims, cpu }) => [
    count,
    median(rate),
    most,
    claims.p50.toFixed(1),
    claims.p99.toFixed(1),
    ...cpuCells(cpu),
  ]),
);
printTable(
  'The same, idle, per second',
  ['workers', 'transactions', 'Redis commands', ...CPU],
  workers.map(({ count, idle }) => [
    count,
    idle.transactions.toFixed(1),
    idle.commands.toFixed(1),
    ...cpuCells(idle.cpu, 0),
  ]),
);

const apis = [];
for (const count of list('API_COUNTS', '1,2,4')) apis.push(await measureApis(count));
printTable(
  `Streams of ${CHUNKS}: two workers, ${STREAM_CLIENTS} clients`,
  ['APIs', 'events/s', ...CPU],
  apis.map(({ count, rate, cpu }) => [count, median(rate), ...cpuCells(cpu)]),
);
process.exit(0);

/** Throughput, time until a run is claimed, and cost with so many workers, then what they cost idle. */
async function measureWorkers(count) {
  const settings = { apis: 1, workers: count, env: { WORKER_CONCURRENCY: String(CONCURRENCY) } };
  return withCluster(settings, async (cluster, counters) => {
    const tenant = await cluster.tenant();
    const [target] = tenant.targets;
    const send = () => target.send('hello', { echo: { delayMs: WAIT_MS } });
    const slots = count * CONCURRENCY;
    const { rate, cpu } = await throughput(counters, send, slots * 2);
    const [{ now }] = await cluster.query('SELECT now()');
    await together(send, slots / 2, SECONDS);
    const claims = await untilClaimed(cluster, tenant, now);
    const before = await counters.read();
    await sleep(IDLE_MS);
    const after = await counters.read();
    const idle = perUnit(before, after, (after.at - before.at) / 1000);
    return { count, rate, cpu, claims, idle, most: (slots * 1000) / WAIT_MS };
  });
}

/** Throughput and cost of streams over so many APIs in turns. */
async function measureApis(count) {
  return withCluster({ apis: count, workers: 2 }, async (cluster, counters) => {
    const { targets } = await cluster.tenant();
    let next = 0;
    const stream = () => targets[next++ % targets.length].stream(CHUNKS);
    return { count, ...(await throughput(counters, stream, STREAM_CLIENTS)) };
  });
}

/** What `clients` callers get done a second in each round, and the CPU time of a task in ms, by process. */
async function throughput(counters, call, clients) {
  // A new process is slow at first: V8 compiles what is used most.
  await together(call, clients, WARM_UP_SECONDS);
  const before = await counters.read();
  let tasks = 0;
  const rate = [];
  const counted = async () => {
    const done = await call();
    tasks += 1;
    return done;
  };
  for (let round = 0; round < ROUNDS; round++) rate.push(await together(counted, clients, SECONDS));
  const { cpu } = perUnit(before, await counters.read(), tasks);
  return { rate, cpu };
}

/** Milliseconds from the creation of a run to its claim, as the log has them, of this tenant's runs since `start`. */
async function untilClaimed(cluster, { id }, start) {
  const rows = await cluster.query(
    `SELECT extract(epoch FROM e.created_at - r.created_at)::float * 1000 AS ms
     FROM runs r JOIN task_events e ON e.tenant_id = r.tenant_id AND e.task_id = r.task_id AND coalesce(e.first_sequence, e.sequence) = 2
     WHERE r.tenant_id = $1 AND r.created_at > $2 ORDER BY ms`,
    [id, start],
  );
  const sorted = rows.map(({ ms }) => ms);
  return { p50: quantile(sorted, 0.5), p99: quantile(sorted, 0.99) };
}

async function withCluster(settings, measure) {
  const cluster = await startCluster(settings);
  const counters = await Counters.of(cluster);
  try {
    return await measure(cluster, counters);
  } finally {
    await counters.close();
    await cluster.stop();
  }
}

/** The sums of all processes of a kind. */
function cpuCells(cpu, digits = 2) {
  const kinds = ['api', 'worker', 'postgres', 'redis'];
  const sum = (kind) =>
    Object.entries(cpu)
      .filter(([name]) => name.split(' ')[0] === kind)
      .reduce((total, [, ms]) => total + ms, 0);
  return kinds.map((kind) => sum(kind).toFixed(digits));
}
