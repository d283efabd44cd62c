// npm ci --prefix bench/peers && node bench/peers/run.mjs: other systems that keep work through a crash, beside Baton in one run, in turns.
// PEERS (all): names, separated by commas. ROUNDS (5), SECONDS (6), CLIENTS (64), SINGLE (60): of the load. RUNS (20), CRASHES (3): of the crashes.
// SLEEPERS (10000). FIGURES (load,idle,crash). Prints the tables of docs/inside/peers.md.
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { setTimeout as delay } from 'node:timers/promises';
import { query } from '../cluster.mjs';
import { TRANSACTIONS, usedBy } from '../counters.mjs';
import { oneByOne, quantile, together } from '../load.mjs';
import { numberSetting } from '../number-setting.mjs';
import { circumstances, median, printTable } from '../report.mjs';
import { startA2aSdkPython } from './contenders/a2a-sdk-python.mjs';
import { startA2aSdk } from './contenders/a2a-sdk.mjs';
import { startAegra } from './contenders/aegra.mjs';
import { startBaton } from './contenders/baton.mjs';
import { startBullmq } from './contenders/bullmq.mjs';
import { startDbos } from './contenders/dbos.mjs';
import { startLanggraph } from './contenders/langgraph.mjs';
import { programPath } from './contenders/programs.mjs';
import { startRestate } from './contenders/restate.mjs';
import { startTemporal } from './contenders/temporal.mjs';
import { Observer } from './observer.mjs';

const ROUNDS = numberSetting('ROUNDS', 5);
const SECONDS = numberSetting('SECONDS', 6);
const CLIENTS = numberSetting('CLIENTS', 64);
const SINGLE = numberSetting('SINGLE', 60);
const RUNS = numberSetting('RUNS', 20);
const CRASHES = numberSetting('CRASHES', 3);
const SLEEPERS = numberSetting('SLEEPERS', 10_000);
const IDLE_SECONDS = numberSetting('IDLE_SECONDS', 20);
const CHUNKS = 20;
/** After that, an execution counts as stuck. */
const STUCK_MS = 120_000;
/** Postgres has counted the transactions of idle connections by then. */
const COUNTED_MS = 10_500;

const STARTS = {
  baton: startBaton,
  dbos: startDbos,
  restate: startRestate,
  temporal: startTemporal,
  bullmq: startBullmq,
  aegra: startAegra,
  langgraph: startLanggraph,
  'a2a-sdk': startA2aSdk,
  'a2a-sdk-python': startA2aSdkPython,
};
/** Programs that npm does not bring. */
const NEEDS = {
  temporal: ['temporal-server', 'temporal-sql-tool'],
  aegra: ['python/bin/aegra'],
  langgraph: ['python/bin/langgraph'],
  'a2a-sdk-python': ['python/bin/a2a-db'],
};
const names = (process.env.PEERS?.split(',') ?? Object.keys(STARTS)).filter((name) => {
  const missing = NEEDS[name]?.filter((program) => !programPath(program)) ?? [];
  if (missing.length > 0)
    console.log(`Skipped ${name}: no ${missing.join(', ')}. docs/inside/peers.md says how to install it.`);
  return missing.length === 0;
});
const wanted = new Set(process.env.FIGURES?.split(',') ?? ['load', 'idle', 'crash']);

console.log(
  circumstances(`${ROUNDS} rounds of ${SECONDS} s, ${CLIENTS} clients: median (min–max). ${versions()}.`),
);
if (wanted.has('load')) await underLoad();
if (wanted.has('idle')) await idle();
if (wanted.has('crash')) await afterCrash();
process.exit(0);

/** Sends, durable steps and durable chunks: all contenders run, and one after the other is under load. */
async function underLoad() {
  const sides = [];
  for (const name of names) sides.push(await STARTS[name]());
  const rates = [
    ['blocking sends/s', 'send', CLIENTS, async (side) => void (await side.send())],
    ['three durable steps, executions/s', 'steps', CLIENTS, async (side) => void (await side.steps())],
    [`durable chunks/s (streams of ${CHUNKS})`, 'stream', CLIENTS, (side) => side.stream(CHUNKS)],
  ];
  const rows = [];
  for (const [title, kind, clients, call] of rates) {
    const able = sides.filter((side) => side[kind]);
    const figures = new Map(able.map((side) => [side, { rate: [], cpu: [], transactions: [] }]));
    for (const side of able) await together(() => call(side), clients, 3);
    for (let round = 0; round < ROUNDS; round++) {
      for (const side of round % 2 ? [...able].reverse() : able) {
        const { rate, cpu, transactions } = figures.get(side);
        const [cpuBefore, before] = [cpuOf(side), await transactionsOf(side)];
        const perSecond = await together(() => call(side), clients, SECONDS);
        const count = perSecond * SECONDS;
        rate.push(perSecond);
        cpu.push((cpuOf(side) - cpuBefore) / count);
        if (side.databaseUrl) transactions.push(((await transactionsOf(side)) - before) / count);
      }
    }
    const row = (what, key, digits) => [
      what,
      ...sides.map((side) =>
        figures.get(side)?.[key].length ? median(figures.get(side)[key], digits) : '–',
      ),
    ];
    rows.push(row(title, 'rate', 0), row('… CPU ms each', 'cpu'));
    rows.push(row('… Postgres transactions each', 'transactions'));
  }
  const singles = new Map(sides.map((side) => [side, []]));
  for (let round = 0; round < ROUNDS; round++)
    for (const side of sides)
      singles.get(side).push(quantile(await oneByOne(() => side.send(), SINGLE), 0.5));
  rows.push(['one client, blocking send, p50 ms', ...sides.map((side) => median(singles.get(side)))]);
  printTable(
    'Under load',
    ['', ...sides.map(({ name }) => name)],
    [['processes', ...sides.map(({ setup }) => setup)], ...rows],
  );
  for (const side of sides) await side.stop();
}

/** What they use while nothing happens, and with many executions that sleep. */
async function idle() {
  const rows = [];
  for (const name of names) {
    const side = await STARTS[name]();
    for (let i = 0; i < 50; i++) await side.send();
    await delay(COUNTED_MS);
    const [cpu, transactions] = await restOf(side);
    const memory = memoryOf(side);
    const cells = [side.name, cpu, transactions, memory];
    if (side.sleep) {
      let left = SLEEPERS;
      await Promise.all(
        Array.from({ length: CLIENTS }, async () => {
          while (left-- > 0) await side.sleep();
        }),
      );
      await untilQuiet(side);
      await delay(COUNTED_MS);
      const [cpuAsleep, transactionsAsleep] = await restOf(side);
      cells.push(cpuAsleep, transactionsAsleep, memoryOf(side));
    } else cells.push('–', '–', '–');
    rows.push(cells);
    await side.stop();
  }
  const asleep = `with ${SLEEPERS.toLocaleString('en')} asleep:`;
  const headers = ['', 'CPU, % of a core', 'transactions/s', 'memory, MB'];
  printTable('Idle', [...headers, `${asleep} CPU`, 'transactions/s', 'memory, MB'], rows);
}

/** All executions sleep: the side takes less than a quarter of a core. */
async function untilQuiet(side) {
  for (let before = cpuOf(side), cpu = Infinity; cpu > 1_000; before += cpu) {
    await delay(4_000);
    cpu = cpuOf(side) - before;
  }
}

async function restOf(side) {
  const [cpuBefore, before] = [cpuOf(side), await transactionsOf(side)];
  await delay(IDLE_SECONDS * 1000);
  const cpu = (cpuOf(side) - cpuBefore) / (IDLE_SECONDS * 10);
  const transactions = side.databaseUrl
    ? (((await transactionsOf(side)) - before) / IDLE_SECONDS).toFixed(1)
    : '–';
  return [cpu.toFixed(1), transactions];
}

/** `kill -9` of a process with executions in the middle of a step, until each makes its next step elsewhere. */
async function afterCrash() {
  const rows = [];
  for (const name of names) {
    const times = [];
    let [title, stuck] = ['', 0];
    for (let crash = 0; crash < CRASHES; crash++) {
      const side = await STARTS[name]({ workers: 2 });
      title = side.name;
      if (!side.ticker) {
        rows.push([side.name, 'does not go on', '', '']);
        await side.stop();
        break;
      }
      const observer = await Observer.start();
      for (let i = 0; i < RUNS; i++) await side.ticker(observer.urlOf(i));
      await observer.all(RUNS);
      await delay(3_000);
      const { went, stuck: left } = await observer.afterKill(() => side.kill(), STUCK_MS);
      times.push(...went);
      stuck += left;
      await side.stop();
      observer.close();
    }
    if (times.length + stuck === 0) continue;
    const sorted = times.sort((a, b) => a - b);
    const show = (q) => (sorted.length ? `${(quantile(sorted, q) / 1000).toFixed(1)} s` : '–');
    rows.push([title, show(0.5), show(0.99), `${stuck} of ${times.length + stuck}`]);
  }
  printTable('From kill -9 to the next step', ['', 'p50', 'p99', `not within ${STUCK_MS / 1000} s`], rows);
}

function cpuOf(side) {
  return usedBy(side).cpu;
}

function memoryOf(side) {
  return Math.round(usedBy(side).memory).toString();
}

/** Transactions of its Postgres, once they are counted. */
async function transactionsOf({ databaseUrl }) {
  if (!databaseUrl) return 0;
  await delay(2_000);
  return (await query(databaseUrl, TRANSACTIONS))[0].count;
}

function versions() {
  const require = createRequire(import.meta.url);
  const { dependencies } = require('./package.json');
  const pinned = readFileSync(new URL('requirements.txt', import.meta.url), 'utf8');
  const python = [...pinned.matchAll(/^(aegra-api|langgraph-api|a2a-sdk)==(.*)$/gm)];
  const server = programPath('temporal-server');
  const temporal = server && execFileSync(server, ['--version'], { encoding: 'utf8' }).trim();
  return [
    ...Object.entries(dependencies).map(([name, version]) => `${name} ${version}`),
    ...python.map(([, name, version]) => `${name} ${version} (Python)`),
    ...(temporal ? [temporal] : []),
  ].join(', ');
}
