// npm run bench:compression: what LZ4 brings for long texts. Two Batons in turns, each on a stock Postgres (stock.mjs) of its own; one has its
// columns set back to pglz, which is Postgres' default. ROUNDS (8), SECONDS (2): of each load. CLIENTS (16).
import pg from 'pg';
import { usageOf } from './counters.mjs';
import { together } from './load.mjs';
import { numberSetting } from './number-setting.mjs';
import { circumstances, median, printTable } from './report.mjs';
import { startBaton } from './servers.mjs';

const ROUNDS = numberSetting('ROUNDS', 8);
const SECONDS = numberSetting('SECONDS', 2);
const CLIENTS = numberSetting('CLIENTS', 16);
const TEXTS = 40;
/** Bytes of the message, and chunks of the same size that the agent streams. */
const KINDS = [
  ['sends/s of 2 KB', 2_000, 0],
  ['sends/s of 8 KB', 8_000, 0],
  ['sends/s of 64 KB', 64_000, 0],
  ['events/s of streams with 8 chunks of 4 KB', 4_000, 8],
];
const WORDS =
  'the agent answers with a task and its events because the caller asks what was done about it'.split(' ');

/** Words that no two texts have in the same order, and some that are in no other. */
function textOf(bytes) {
  let text = '';
  while (text.length < bytes)
    text += `${WORDS[Math.floor(Math.random() * WORDS.length)]}${Math.random().toString(36).slice(2, 5)} `;
  return text;
}

async function setPglz(url) {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  // It ends with its server, if this fails.
  client.on('error', () => undefined);
  const { rows } = await client.query(
    `SELECT attrelid::regclass AS "table", attname AS name FROM pg_attribute JOIN pg_class c ON c.oid = attrelid WHERE attcompression = 'l' AND relkind = 'r'`,
  );
  if (rows.length === 0) throw new Error('This Postgres has no LZ4.');
  for (const { table, name } of rows)
    await client.query(`ALTER TABLE ${table} ALTER COLUMN "${name}" SET COMPRESSION pglz`);
  await client.end();
}

/** CPU time in ms of the processes of Postgres. */
const cpuOf = ({ processes }) => usageOf(processes().postgres).cpu;

const batons = await Promise.all([startBaton({ workers: 1 }), startBaton({ workers: 1 })]);
try {
  await setPglz(batons[1].ownerUrl);
  const rows = [];
  for (const [name, bytes, chunks] of KINDS) {
    const texts = Array.from({ length: TEXTS }, () => textOf(bytes));
    let turn = 0;
    const load = ({ target }, seconds) =>
      together(
        () =>
          chunks > 0 ? target.stream(chunks, texts[turn++ % TEXTS]) : target.send(texts[turn++ % TEXTS]),
        CLIENTS,
        seconds,
      );
    const figures = [[], []];
    const costs = [0, 0];
    for (const baton of batons) await load(baton, 1);
    for (let round = 0; round < ROUNDS; round++) {
      for (const side of round % 2 === 0 ? [0, 1] : [1, 0]) {
        const before = cpuOf(batons[side]);
        const rate = await load(batons[side], SECONDS);
        figures[side].push(rate);
        costs[side] += (cpuOf(batons[side]) - before) / (rate * SECONDS) / ROUNDS;
      }
    }
    const ratios = figures[0].map((rate, round) => rate / figures[1][round]);
    rows.push([
      name,
      ...figures.map((rates) => median(rates)),
      median(ratios, 2),
      ...costs.map((ms) => ms.toFixed(2)),
    ]);
  }
  console.log(circumstances(`${ROUNDS} rounds of ${SECONDS} s, ${CLIENTS} clients: median (min–max).`));
  const columns = ['', 'LZ4', 'pglz', 'ratio', 'CPU of Postgres, ms each: LZ4', 'pglz'];
  printTable('Compression of long texts', columns, rows);
} finally {
  await Promise.all(batons.map((baton) => baton.stop()));
}
