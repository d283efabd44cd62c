// npm run bench:scale-out: what more processes bring. Agents that wait 100 ms on 1, 2 and 4 workers; streams on 1, 2 and 4 APIs.
// ROUNDS (3), SECONDS (8), CLIENTS (64).
// CONCURRENCY (10): runs of a worker at one time. Few, so that the workers are what a run waits for.
import { startCluster } from './cluster.mjs';
import { together } from './load.mjs';
import { circumstances, median, printTable } from './report.mjs';

const number = (name, fallback) => Number(process.env[name] ?? fallback);
const ROUNDS = number('ROUNDS', 3);
const SECONDS = number('SECONDS', 8);
const CLIENTS = number('CLIENTS', 64);
const CONCURRENCY = number('CONCURRENCY', 10);
const CHUNKS = 20;
const WAIT_MS = 100;
const SIZES = [1, 2, 4];

const waits = ({ targets: [target] }) => target.send('hello', { echo: { delayMs: WAIT_MS } });
const streams = ({ targets }) => {
  let next = 0;
  return () => targets[next++ % targets.length].stream(CHUNKS);
};

console.log(circumstances(`${ROUNDS} rounds of ${SECONDS} s, ${CLIENTS} clients: median (min–max).`));
const workers = await each(SIZES, async (count) =>
  measure({ apis: 1, workers: count, env: { WORKER_CONCURRENCY: String(CONCURRENCY) } }, async (cluster) => {
    const tenant = await cluster.tenant();
    return { rate: () => waits(tenant) };
  }),
);
printTable(
  `Agents that wait ${WAIT_MS} ms, sends/s: one API, ${CONCURRENCY} runs a worker`,
  ['workers', 'sends/s', 'the most that can be'],
  SIZES.map((size, i) => [size, median(workers[i].rate), (size * CONCURRENCY * 1000) / WAIT_MS]),
);

const apis = await each(SIZES, async (count) =>
  measure({ apis: count, workers: 2 }, async (cluster) => ({ rate: streams(await cluster.tenant()) })),
);
printTable(
  `Streams of ${CHUNKS}, events/s: two workers`,
  ['APIs', 'events/s'],
  SIZES.map((size, i) => [size, median(apis[i].rate)]),
);

process.exit(0);

async function each(list, work) {
  const results = [];
  for (const item of list) results.push(await work(item));
  return results;
}

/** Starts a cluster and measures each call in turns: its rates by name. */
async function measure(options, prepare) {
  const cluster = await startCluster(options);
  try {
    const calls = Object.entries(await prepare(cluster));
    const rates = Object.fromEntries(calls.map(([name]) => [name, []]));
    for (const [, call] of calls) await together(call, 8, 3);
    for (let round = 0; round < ROUNDS; round++) {
      for (const [name, call] of calls) rates[name].push(await together(call, CLIENTS, SECONDS));
    }
    return rates;
  } finally {
    await cluster.stop();
  }
}
