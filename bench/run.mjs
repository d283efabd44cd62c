// npm run bench: compares Baton with the official SDK's in-memory server. Measures both in turns.
// ROUNDS (3), SECONDS per round (8), CLIENTS (64), WORKERS (1).
import { cpus } from 'node:os';
import { oneByOne, quantile, range, together } from './load.mjs';
import { startBaton, startSdkServer } from './servers.mjs';

const number = (name, fallback) => Number(process.env[name] ?? fallback);
const ROUNDS = number('ROUNDS', 3);
const SECONDS = number('SECONDS', 8);
const CLIENTS = number('CLIENTS', 64);
const CHUNKS = 20;

/** Each measures one target and returns one number. */
const SCENARIOS = [
  {
    name: 'blocking send, 1 client, p50 ms',
    run: async (t) => quantile(await oneByOne(() => t.send(), 200), 0.5),
  },
  {
    name: 'blocking send, 1 client, p99 ms',
    run: async (t) => quantile(await oneByOne(() => t.send(), 200), 0.99),
  },
  {
    name: `blocking send, ${CLIENTS} clients, tasks/s`,
    run: (t) => together(() => t.send(), CLIENTS, SECONDS),
  },
  {
    name: `stream of ${CHUNKS} chunks, ${CLIENTS} clients, events/s`,
    run: (t) => together(() => t.stream(CHUNKS), CLIENTS, SECONDS),
  },
];

const sides = [await startBaton({ workers: number('WORKERS', 1) }), await startSdkServer()];
const results = SCENARIOS.map(() => sides.map(() => []));
try {
  for (const { target } of sides) await together(() => target.send(), 8, 3);
  for (let round = 0; round < ROUNDS; round++) {
    for (const [s, scenario] of SCENARIOS.entries()) {
      for (const [i, { target }] of sides.entries()) results[s][i].push(await scenario.run(target));
    }
  }
} finally {
  await Promise.all(sides.map((side) => side.stop()));
}

const show = ({ min, median, max }) => `${median.toFixed(1)} (${min.toFixed(1)}–${max.toFixed(1)})`;
console.log(
  `\n${cpus().length} cores, ${cpus()[0].model.trim()}, Node ${process.version}, ${ROUNDS} rounds: median (min–max)\n`,
);
console.table(
  Object.fromEntries(
    SCENARIOS.map(({ name }, s) => {
      const [baton, sdk] = results[s];
      const ratio = baton.map((value, round) => value / sdk[round]);
      return [
        name,
        { baton: show(range(baton)), 'sdk, in memory': show(range(sdk)), 'baton / sdk': show(range(ratio)) },
      ];
    }),
  ),
);
