// npm run bench:waterfall: where each millisecond of one client's blocking send goes, from its socket and back, made of the spans that
// API and worker send to a collector. Baton runs on stock services; the bare skeleton, in turns, shows what its parts alone take.
// ROUNDS (5), SENDS (200): of each round.
// Spans begin at whole milliseconds, so the table has means, not medians.
import { createRequire } from 'node:module';
import { randomBytes } from 'node:crypto';
import { Target } from './client.mjs';
import { oneByOne, quantile } from './load.mjs';
import { numberSetting } from './number-setting.mjs';
import { circumstances, median, printTable } from './report.mjs';
import { startBaton, startSkeleton } from './servers.mjs';

const require = createRequire(import.meta.url);
require('../test/support/load-typescript.js');
const { OtlpReceiver } = require('../test/support/otlp-receiver.ts');

const ROUNDS = numberSetting('ROUNDS', 5);
const SENDS = numberSetting('SENDS', 200);
const WARM_UP = 500;
/** Sends that the machine has held up say nothing about the others. */
const KEPT = 0.9;

/** The hops in their order: a name, and the moments between which it lies. */
const HOPS = [
  ['caller → API: HTTP, token, decoding', 'sent', 'call.start'],
  ['API: rights, limits, the new task', 'call.start', 'store turn.start'],
  ['Postgres: task, message, run and lease, one commit', 'store turn.start', 'store turn.end'],
  ['API → Redis → worker: the run', 'store turn.end', 'claim run.end'],
  ['worker: the agent', 'claim run.end', 'end turn.start'],
  ['Postgres: events, state and run, one commit', 'end turn.start', 'end turn.end'],
  ['worker → Redis → API: the events', 'end turn.end', 'call.end'],
  ['API → caller: the answer', 'call.end', 'answered'],
];
const PARTS = ['call', 'store turn', 'claim run', 'end turn'];

const collector = await OtlpReceiver.start();
const [baton, plain, bare] = await Promise.all([
  startBaton({
    workers: 1,
    env: { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `${collector.url}/v1/traces`, OTEL_BSP_SCHEDULE_DELAY: '500' },
  }),
  startBaton({ workers: 1 }),
  startSkeleton('bare'),
]);
const target = new Target('traced', `${baton.url}/agents/echo`, { authorization: `Bearer ${baton.token}` });

/** One send in a trace of its own: the moments that its caller sees, in ms since 1970. */
async function traced() {
  const traceId = randomBytes(16).toString('hex');
  target.headers.traceparent = `00-${traceId}-${randomBytes(8).toString('hex')}-01`;
  const sent = Date.now();
  await target.send();
  return { traceId, sent, answered: Date.now() };
}

/** All moments of a send. Resolves when its spans have come. */
async function momentsOf({ traceId, ...moments }) {
  for (const part of PARTS) {
    const name = part === 'call' ? 'SendMessage' : part;
    const span = await collector.span((each) => each.traceId === traceId && each.name === name);
    moments[`${part}.start`] = span.startedAt;
    moments[`${part}.end`] = span.startedAt + span.seconds * 1000;
  }
  return moments;
}

const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;

try {
  for (const each of [target, plain.target, bare.target]) await oneByOne(() => each.send(), WARM_UP);
  const hops = HOPS.map(() => []);
  const p50 = { plain: [], bare: [] };
  for (let round = 0; round < ROUNDS; round++) {
    const sends = [];
    for (let i = 0; i < SENDS; i++) sends.push(await traced());
    const all = [];
    for (const send of sends) all.push(await momentsOf(send));
    collector.spans.length = 0;
    const took = (moments) => moments.answered - moments.sent;
    const kept = all.sort((a, b) => took(a) - took(b)).slice(0, Math.ceil(all.length * KEPT));
    HOPS.forEach(([, from, to], i) => hops[i].push(mean(kept.map((moments) => moments[to] - moments[from]))));
    for (const [name, each] of Object.entries({ plain: plain.target, bare: bare.target }))
      p50[name].push(quantile(await oneByOne(() => each.send(), SENDS), 0.5));
  }
  console.log(circumstances(`${ROUNDS} rounds of ${SENDS} sends: median of the rounds' means (min–max).`));
  const rows = HOPS.map(([name], i) => [name, median(hops[i], 2)]);
  const sums = hops[0].map((_, round) => hops.reduce((sum, each) => sum + each[round], 0));
  printTable('One send, one client', ['', 'ms'], [...rows, ['together, traced', median(sums, 2)]]);
  const ratios = p50.plain.map((ms, round) => ms / p50.bare[round]);
  printTable(
    'Without a collector, p50',
    ['', 'Baton', 'bare skeleton', 'ratio'],
    [['ms', median(p50.plain, 2), median(p50.bare, 2), median(ratios, 2)]],
  );
} finally {
  target.close();
  await Promise.all([baton.stop(), plain.stop(), bare.stop()]);
  collector.stop();
}
process.exit(0);
