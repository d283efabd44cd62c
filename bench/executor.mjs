// npm run bench:executor: an installed agent, in a process of its own, beside the built-in `echo`, in turns. It does what `echo` does.
// ROUNDS (5), SECONDS (6), CLIENTS (64): of the load. DIST: the build to measure.
import { fileURLToPath } from 'node:url';
import { startCluster } from './cluster.mjs';
import { oneByOne, quantile, together } from './load.mjs';
import { circumstances, median, printTable } from './report.mjs';

const number = (name, fallback) => Number(process.env[name] ?? fallback);
const ROUNDS = number('ROUNDS', 5);
const SECONDS = number('SECONDS', 6);
const CLIENTS = number('CLIENTS', 64);
const CHUNKS = 20;
const SINGLE = 50;
const AGENTS = fileURLToPath(new URL('agents', import.meta.url));

const cluster = await startCluster({
  dist: process.env.DIST,
  apis: 1,
  workers: 1,
  env: { BATON_AGENTS_DIR: AGENTS },
});
try {
  const [echo] = (await cluster.tenant()).targets;
  const [installed] = (await cluster.tenant({ agent: 'parrot' })).targets;
  const figures = {
    'sends/s': (target) => together(() => target.send(), CLIENTS, SECONDS),
    'events/s': (target) => together(() => target.stream(CHUNKS), CLIENTS, SECONDS),
    'send, 1 client, p50 ms': async (target) => quantile(await oneByOne(() => target.send(), SINGLE), 0.5),
  };
  for (const target of [echo, installed]) await together(() => target.stream(CHUNKS), CLIENTS, 3);
  const rows = [];
  for (const [name, measure] of Object.entries(figures)) {
    const [ofEcho, ofInstalled] = [[], []];
    for (let round = 0; round < ROUNDS; round++) {
      ofEcho.push(await measure(echo));
      ofInstalled.push(await measure(installed));
    }
    const ratios = ofInstalled.map((figure, round) => figure / ofEcho[round]);
    rows.push([name, median(ofEcho), median(ofInstalled), median(ratios, 2)]);
  }
  const what = `${ROUNDS} rounds of ${SECONDS} s, ${CLIENTS} clients, streams of ${CHUNKS}: median (min–max).`;
  console.log(circumstances(what));
  printTable(
    'An installed agent in a process of its own, beside `echo`',
    ['', '`echo`', 'installed', 'installed ÷ `echo`'],
    rows,
  );
} finally {
  await cluster.stop();
}
process.exit(0);
