// npm run bench:regression: in about a minute, whether a change has made Baton slower. Baton beside the bare skeleton, in turns. Compare the
// ratios of two commits, not the figures: the machine is never the same.
// ROUNDS (4), SECONDS (2): of each load. CLIENTS (32).
import { fileURLToPath } from 'node:url';
import { setTimeout as delay } from 'node:timers/promises';
import { Target } from './client.mjs';
import { usedBy } from './counters.mjs';
import { oneByOne, quantile, together } from './load.mjs';
import { numberSetting } from './number-setting.mjs';
import { circumstances, median, printTable } from './report.mjs';
import { startBaton, startSkeleton } from './servers.mjs';

const ROUNDS = numberSetting('ROUNDS', 4);
const SECONDS = numberSetting('SECONDS', 2);
const CLIENTS = numberSetting('CLIENTS', 32);
const CHUNKS = 20;
const SINGLE = 20;
const IDLE_MS = 5_000;

const BATON_AGENTS_DIR = fileURLToPath(new URL('agents', import.meta.url));

const [baton, bare] = await Promise.all([
  startBaton({ workers: 1, env: { BATON_AGENTS_DIR } }),
  startSkeleton('bare'),
]);
const steps = new Target('steps', `${baton.url}/agents/steps`, { authorization: `Bearer ${baton.token}` });
const sends = (target) => together(() => target.send(), CLIENTS, SECONDS);
const chunks = (target) => together(() => target.stream(CHUNKS), CLIENTS, SECONDS);
const single = async (target) => quantile(await oneByOne(() => target.send(), SINGLE), 0.5);
/** What it does, and with which of both sides. The skeleton has no steps: a task with three of them is compared with its task. */
const KINDS = [
  ['sends/s', sends, baton.target, bare.target],
  ['events/s of streams', chunks, baton.target, bare.target],
  ['tasks/s of three steps', sends, steps, bare.target],
  ['send, one client, p50 ms', single, baton.target, bare.target],
];
try {
  for (const target of [baton.target, steps, bare.target]) await sends(target);
  const rows = [];
  for (const [name, measure, ours, theirs] of KINDS) {
    const figures = [[], []];
    for (let round = 0; round < ROUNDS; round++) {
      figures[0].push(await measure(ours));
      figures[1].push(await measure(theirs));
    }
    const ratios = figures[0].map((figure, round) => figure / figures[1][round]);
    rows.push([name, median(figures[0]), median(figures[1]), median(ratios, 2)]);
  }
  const before = [baton, bare].map(usedBy);
  await delay(IDLE_MS);
  const after = [baton, bare].map(usedBy);
  const cpu = after.map((each, i) => (each.cpu - before[i].cpu) / (IDLE_MS / 1000));
  const memory = after.map((each) => each.memory);
  rows.push(['idle, CPU ms/s', ...cpu.map((ms) => ms.toFixed(1)), (cpu[0] / cpu[1]).toFixed(2)]);
  rows.push(['memory, MB', ...memory.map((mb) => mb.toFixed(0)), (memory[0] / memory[1]).toFixed(2)]);
  console.log(circumstances(`${ROUNDS} rounds of ${SECONDS} s, ${CLIENTS} clients: median (min–max).`));
  printTable('Baton beside the bare skeleton', ['', 'Baton', 'skeleton', 'ratio'], rows);
} finally {
  steps.close();
  await Promise.all([baton.stop(), bare.stop()]);
}
