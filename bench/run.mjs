// npm run bench: Baton beside two skeletons and the official SDK's server. Prints the tables of docs/inside/figures.md.
// ROUNDS (3), SECONDS per measurement (8), CLIENTS (64), WORKERS (1), SIDES (a list of the names below).
// COST_CLIENTS (32): clients while the cost per task is counted. COST=0 leaves the costs out.
import { setTimeout as sleep } from 'node:timers/promises';
import { Counters, perUnit } from './counters.mjs';
import { burst, oneByOne, quantile, together } from './load.mjs';
import { numberSetting } from './number-setting.mjs';
import { circumstances, median, printTable } from './report.mjs';
import { startBaton, startSdkServer, startSkeleton } from './servers.mjs';

const ROUNDS = numberSetting('ROUNDS', 3);
const SECONDS = numberSetting('SECONDS', 8);
const CLIENTS = numberSetting('CLIENTS', 64);
const WORKERS = numberSetting('WORKERS', 1);
const COST_CLIENTS = numberSetting('COST_CLIENTS', 32);
const CHUNKS = 20;
const BURST = 20;
const IDLE_MS = 30_000;

const STARTS = {
  baton: () => startBaton({ workers: WORKERS }),
  // Baton on other Postgres servers: as `npm start` tunes its own, and releases of npm's packages.
  embedded: () => startBaton({ workers: WORKERS, postgres: 'embedded' }),
  'postgres-17': () => startBaton({ workers: WORKERS, postgres: '17' }),
  'postgres-18': () => startBaton({ workers: WORKERS, postgres: '18' }),
  bare: () => startSkeleton('bare'),
  honest: () => startSkeleton('honest'),
  'sdk-postgres': () => startSdkServer('postgres'),
  'sdk-memory': () => startSdkServer('memory'),
};

/** Each measures one side and returns a number for each of its names. */
const SCENARIOS = [
  {
    names: [`blocking sends/s, ${CLIENTS} clients`],
    run: async (target) => [await together(() => target.send(), CLIENTS, SECONDS)],
  },
  {
    names: [`events/s, streams of ${CHUNKS}, ${CLIENTS} clients`],
    run: async (target) => [await together(() => target.stream(CHUNKS), CLIENTS, SECONDS)],
  },
  {
    names: ['blocking send, 1 client, p50 ms', 'blocking send, 1 client, p99 ms'],
    run: async (target) => {
      const times = await oneByOne(() => target.send(), 200);
      return [quantile(times, 0.5), quantile(times, 0.99)];
    },
  },
  {
    names: ['worker to caller, light load, p50 ms'],
    run: async (target) => {
      const lags = [];
      await oneByOne(async () => lags.push(await target.lastFrameLag()), 200);
      return [
        quantile(
          lags.sort((a, b) => a - b),
          0.5,
        ),
      ];
    },
  },
];

const wanted = process.env.SIDES?.split(',') ?? [
  'baton',
  'embedded',
  'bare',
  'honest',
  'sdk-postgres',
  'sdk-memory',
];
const sides = [];
try {
  for (const name of wanted) sides.push(await STARTS[name]());
  console.log(circumstances(`${ROUNDS} rounds of ${SECONDS} s: median (min–max).`));
  await coldAndWarm();
  await compare();
  await doors();
  if (process.env.COST !== '0') await costs();
} finally {
  await Promise.all(sides.map((side) => side.stop()));
}
process.exit(0);

/** The first tasks after a start, before anything is warm, and as many when everything is. Warms all sides up. */
async function coldAndWarm() {
  const rows = [];
  for (const { target } of sides) {
    const cold = await burst(() => target.firstEvent(CHUNKS), BURST);
    for (let i = 0; i < 2; i++) {
      await together(() => target.send(), 16, 3);
      await together(() => target.stream(CHUNKS), 16, 3);
    }
    const warm = [];
    for (let i = 0; i < 10; i++)
      warm.push(quantile(await burst(() => target.firstEvent(CHUNKS), BURST), 0.99));
    const usual = quantile(
      warm.sort((a, b) => a - b),
      0.5,
    );
    const first = quantile(cold, 0.99);
    rows.push([target.name, median([first]), median([usual]), median([first / usual])]);
  }
  const title = `The first ${BURST} tasks at once: p99 until \`working\`, ms`;
  printTable(title, ['', 'cold', 'warm', 'cold ÷ warm'], rows);
}

/** All scenarios on all sides, in turns. */
async function compare() {
  const results = SCENARIOS.map(({ names }) => names.map(() => sides.map(() => [])));
  for (let round = 0; round < ROUNDS; round++) {
    for (const [s, scenario] of SCENARIOS.entries()) {
      for (const i of orderOf(round)) {
        const values = await scenario.run(sides[i].target);
        for (const [n, value] of values.entries()) results[s][n][i].push(value);
      }
    }
  }
  const figures = SCENARIOS.flatMap(({ names }, s) =>
    names.map((name, n) => ({ name, bySide: results[s][n] })),
  );
  const titles = sides.map(({ target }) => target.name);
  printTable(
    'Figures',
    ['', ...titles],
    figures.map(({ name, bySide }) => [name, ...bySide.map((values) => median(values))]),
  );
  if (wanted[0] !== 'baton' || sides.length === 1) return;
  const ratio = (baton, other) =>
    median(
      baton.map((value, round) => value / other[round]),
      2,
    );
  printTable(
    'Baton ÷ the others',
    ['', ...titles.slice(1)],
    figures.map(({ name, bySide: [baton, ...others] }) => [
      name,
      ...others.map((other) => ratio(baton, other)),
    ]),
  );
}

/**
 * Each round in another order. A Postgres vacuums and writes checkpoints for a while after its turn, which slows down the side that is
 * next.
 */
function orderOf(round) {
  const all = [...sides.keys()];
  const turned = [...all.slice(round % all.length), ...all.slice(0, round % all.length)];
  return round % 2 === 0 ? turned : turned.reverse();
}

/** What a task costs on each side, then what Baton takes while it is idle. */
/** The same blocking call over A2A and over MCP, in turns. */
async function doors() {
  const side = sides.find(({ target }) => target.name === 'baton');
  if (!side) return;
  const kinds = [
    { name: 'A2A', call: () => side.target.send() },
    { name: 'MCP', call: () => side.target.callTool() },
  ];
  const figures = kinds.map(() => ({ ms: [], cpu: [], rate: [] }));
  for (const { call } of kinds) await together(call, 16, 2);
  const counters = await Counters.of(side);
  try {
    for (let round = 0; round < ROUNDS; round++) {
      for (const i of round % 2 === 0 ? [0, 1] : [1, 0]) {
        const { call } = kinds[i];
        figures[i].ms.push(quantile(await oneByOne(call, 200), 0.5));
        let tasks = 0;
        const before = await counters.read();
        figures[i].rate.push(
          await together(() => call().then(() => void (tasks += 1)), COST_CLIENTS, SECONDS),
        );
        figures[i].cpu.push(perUnit(before, await counters.read(), tasks).cpu.api);
      }
    }
  } finally {
    await counters.close();
  }
  const [a2a, mcp] = figures;
  const ratio = (name) => median(mcp[name].map((value, round) => value / a2a[name][round]));
  printTable(
    `A blocking call over A2A and over MCP, ${COST_CLIENTS} clients`,
    ['', 'A2A', 'MCP', 'MCP ÷ A2A'],
    [
      ['1 client, p50 ms', median(a2a.ms), median(mcp.ms), ratio('ms')],
      ['CPU ms of the API per call', median(a2a.cpu), median(mcp.cpu), ratio('cpu')],
      ['calls/s', median(a2a.rate), median(mcp.rate), ratio('rate')],
    ],
  );
}

async function costs() {
  const kinds = [
    { name: 'send', call: (target) => target.send() },
    { name: `stream of ${CHUNKS}`, call: (target) => target.stream(CHUNKS) },
  ];
  const rows = [];
  for (const side of sides) {
    const counters = await Counters.of(side);
    try {
      let before = await counters.read();
      for (const { name, call } of kinds) {
        let tasks = 0;
        await together(() => call(side.target).then(() => (tasks += 1)), COST_CLIENTS, SECONDS);
        const after = await counters.read();
        rows.push(costRow(`${side.target.name}, ${name}`, perUnit(before, after, tasks)));
        before = after;
      }
      if (side.target.name === 'baton') await idle(counters, before);
    } finally {
      await counters.close();
    }
  }
  printTable(
    `Cost of a task, ${COST_CLIENTS} clients`,
    ['', 'transactions', 'Redis commands', 'WAL KiB', 'CPU ms: API', 'worker', 'Postgres', 'Redis'],
    rows,
  );
}

function costRow(title, { transactions, commands, wal, cpu }) {
  const values = [transactions, commands, wal / 1024, cpu.api, cpu.worker, cpu.postgres, cpu.redis];
  return [title, ...values.map((value) => (value === undefined ? '' : value.toFixed(2)))];
}

async function idle(counters, before) {
  await sleep(IDLE_MS);
  const after = await counters.read();
  const { transactions, commands, commandsByName, cpu } = perUnit(
    before,
    after,
    (after.at - before.at) / 1000,
  );
  printTable(
    `Idle, one API and ${WORKERS} worker(s), per second`,
    ['', ''],
    [
      ['transactions', transactions.toFixed(2)],
      [
        'Redis commands',
        `${commands.toFixed(2)} (${commandsByName.map(([name, calls]) => `${name} ${calls.toFixed(1)}`).join(', ')})`,
      ],
      ...Object.entries(cpu).map(([name, ms]) => [`CPU ms, ${name}`, ms.toFixed(1)]),
      ...Object.entries(after.memory)
        .filter(([name]) => name !== 'postgres')
        .map(([name, mb]) => [`memory of ${name} (resident), MB`, mb.toFixed(0)]),
    ],
  );
}
