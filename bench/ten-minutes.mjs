// npm run bench:ten-minutes: whether anything grows under load. MINUTES (10), CLIENTS (64), EVERY seconds (30), WORKERS (1).
// Half of the clients send, half stream. Prints a row each time: rate, latency, memory, dead rows of the tables.
import { setTimeout as sleep } from 'node:timers/promises';
import { usageOf } from './counters.mjs';
import { query } from './cluster.mjs';
import { quantile } from './load.mjs';
import { numberSetting } from './number-setting.mjs';
import { circumstances, printTable } from './report.mjs';
import { startBaton } from './servers.mjs';

const MINUTES = numberSetting('MINUTES', 10);
const CLIENTS = numberSetting('CLIENTS', 64);
const EVERY = numberSetting('EVERY', 30);
const CHUNKS = 20;
const DEAD = `SELECT relname AS name, n_dead_tup::int AS dead, n_live_tup::int AS live FROM pg_stat_user_tables
  WHERE n_dead_tup > 100 ORDER BY n_dead_tup DESC`;

const baton = await startBaton({ workers: numberSetting('WORKERS', 1) });
const { target } = baton;
const end = performance.now() + MINUTES * 60_000;
let times = [];

async function client(number) {
  while (performance.now() < end) {
    const start = performance.now();
    await (number % 2 ? target.send() : target.stream(CHUNKS));
    times.push(performance.now() - start);
  }
}

async function sample(seconds) {
  const sorted = times.sort((a, b) => a - b);
  times = [];
  const { api, worker } = baton.processes();
  const memory = [api, worker].map((pid) => usageOf(pid).memory.toFixed(0));
  const dead = await query(baton.databaseUrl, DEAD);
  return [
    seconds.toFixed(0),
    (sorted.length / EVERY).toFixed(0),
    quantile(sorted, 0.5).toFixed(0),
    quantile(sorted, 0.99).toFixed(0),
    ...memory,
    dead.map(({ name, dead: rows, live }) => `${name} ${rows} of ${live}`).join(', '),
  ];
}

const rows = [];
try {
  const clients = Promise.all(Array.from({ length: CLIENTS }, (_, i) => client(i)));
  const begin = performance.now();
  while (performance.now() + EVERY * 1000 <= end) {
    await Promise.race([sleep(EVERY * 1000), clients]);
    rows.push(await sample((performance.now() - begin) / 1000));
    console.error(rows.at(-1).join('  '));
  }
  await clients;
} finally {
  await baton.stop();
}
console.log(circumstances(`${CLIENTS} clients, half sends and half streams of ${CHUNKS}.`));
printTable(
  `${MINUTES} minutes of load`,
  ['s', 'tasks/s', 'p50 ms', 'p99 ms', 'API MB', 'worker MB', 'dead rows'],
  rows,
);
process.exit(0);
