// npm run bench:executor: an installed agent, in a process of its own, beside the built-in `echo`, in turns. It does what `echo` does.
// And an agent with three durable steps beside the installed one.
// ROUNDS (5), SECONDS (6), CLIENTS (64): of the load. DIST: the build to measure.
import { fileURLToPath } from 'node:url';
import { startCluster } from './cluster.mjs';
import { oneByOne, quantile, together } from './load.mjs';
import { numberSetting } from './number-setting.mjs';
import { circumstances, median, printTable } from './report.mjs';

const ROUNDS = numberSetting('ROUNDS', 5);
const SECONDS = numberSetting('SECONDS', 6);
const CLIENTS = numberSetting('CLIENTS', 64);
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
  const [steps] = (await cluster.tenant({ agent: 'steps' })).targets;
  const figures = {
    'sends/s': (target) => together(() => target.send(), CLIENTS, SECONDS),
    'events/s': (target) => together(() => target.stream(CHUNKS), CLIENTS, SECONDS),
    'send, 1 client, p50 ms': async (target) => quantile(await oneByOne(() => target.send(), SINGLE), 0.5),
  };
  for (const target of [echo, installed]) await together(() => target.stream(CHUNKS), CLIENTS, 3);
  await together(() => steps.send(), CLIENTS, 3);
  const what = `${ROUNDS} rounds of ${SECONDS} s, ${CLIENTS} clients, streams of ${CHUNKS}: median (min–max).`;
  console.log(circumstances(what));
  printTable(
    'An installed agent in a process of its own, beside `echo`',
    ['', '`echo`', 'installed', 'installed ÷ `echo`'],
    await compared(figures, echo, installed),
  );
  const { 'events/s': _, ...ofSteps } = figures;
  printTable(
    'Three durable steps, beside an agent without steps',
    ['', 'no steps', 'three steps', 'three steps ÷ no steps'],
    await compared(ofSteps, installed, steps),
  );
} finally {
  await cluster.stop();
}
process.exit(0);

/** Rows of a table: each figure of both targets, measured in turns, and their ratio. */
async function compared(figures, first, second) {
  const rows = [];
  for (const [name, measure] of Object.entries(figures)) {
    const [ofFirst, ofSecond] = [[], []];
    for (let round = 0; round < ROUNDS; round++) {
      ofFirst.push(await measure(first));
      ofSecond.push(await measure(second));
    }
    const ratios = ofSecond.map((figure, round) => figure / ofFirst[round]);
    rows.push([name, median(ofFirst), median(ofSecond), median(ratios, 2)]);
  }
  return rows;
}
