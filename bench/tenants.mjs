// npm run bench:tenants: the same load from one tenant and from many. One API and one worker process.
// TENANTS (1,8,64,500): how many share the load. CLIENTS (64), ROUNDS (3), SECONDS of each (4), DIST of another build.
import getPort from 'get-port';
import { Target } from './client.mjs';
import { startCluster } from './cluster.mjs';
import { Counters, perUnit } from './counters.mjs';
import { quantile, together } from './load.mjs';
import { numberSetting } from './number-setting.mjs';
import { circumstances, median, printTable } from './report.mjs';

const TENANTS = (process.env.TENANTS ?? '1,8,64,500').split(',').map(Number);
const CLIENTS = numberSetting('CLIENTS', 64);
const ROUNDS = numberSetting('ROUNDS', 3);
const SECONDS = numberSetting('SECONDS', 4);
const CHUNKS = 20;

const port = await getPort();
const cluster = await startCluster({
  dist: process.env.DIST,
  apis: 1,
  workers: 1,
  env: { MANAGEMENT_PORT: String(port) },
});
let counters;
try {
  const callers = await tenants(Math.max(...TENANTS));
  counters = await Counters.of(cluster);
  const results = new Map();
  for (let round = 0; round <= ROUNDS; round++) {
    for (const count of TENANTS) {
      const turn = callers.slice(0, count);
      const before = await counters.read();
      const { rate: sends, times } = await load(turn, (target) => target.send());
      const after = await counters.read();
      const { rate: streams } = await load(turn, (target) => target.stream(CHUNKS));
      // The first one warms up.
      if (round === 0) continue;
      const found = results.get(count) ?? { sends: [], p99: [], streams: [], transactions: [], postgres: [] };
      results.set(count, found);
      const { transactions, cpu } = perUnit(before, after, times.length);
      found.sends.push(sends);
      found.p99.push(quantile(times, 0.99));
      found.streams.push(streams);
      found.transactions.push(transactions);
      found.postgres.push(cpu.postgres);
    }
  }
  console.log(circumstances(`${CLIENTS} clients; ${ROUNDS} rounds of ${SECONDS} s: median (min–max).`));
  printTable(
    'One API and one worker process',
    [
      'tenants',
      'sends/s',
      'p99 ms',
      `events/s, streams of ${CHUNKS}`,
      'transactions a send',
      'CPU ms of Postgres',
    ],
    [...results].map(([count, { sends, p99, streams, transactions, postgres }]) => [
      count,
      ...[sends, p99, streams, transactions, postgres].map((values) => median(values)),
    ]),
  );
} finally {
  await counters?.close();
  await cluster.stop();
}
process.exit(0);

/** One caller for each of so many new tenants. */
async function tenants(count) {
  const { targets } = await cluster.tenant();
  const { url, agent } = targets[0];
  const operator = (await cluster.cli('operator-tokens', 'create', '--name', 'bench')).trim();
  const headers = { authorization: `Bearer ${operator}`, 'content-type': 'application/json' };
  const create = async (path, body) => {
    const address = `http://127.0.0.1:${port}/v1/admin/tenants${path}`;
    const answer = await fetch(address, { method: 'POST', headers, body: JSON.stringify(body) });
    if (answer.status !== 201) throw new Error(`${address}: ${answer.status} ${await answer.text()}`);
    return answer.json();
  };
  const callers = [];
  for (let i = 0; i < count; i++) {
    const slug = `tenant-${i}`;
    await create('', { slug });
    const { secret } = await create(`/${slug}/tokens`, { name: 'bench', scopes: ['agents:call'] });
    const target = new Target(slug, url, { authorization: `Bearer ${secret}` });
    // All of them come over the same connections.
    target.agent = agent;
    callers.push(target);
  }
  return callers;
}

/** The callers in turns: `rate` is what they got done a second, `times` the milliseconds of each call, sorted. */
async function load(callers, call) {
  const times = [];
  let next = 0;
  const rate = await together(
    async () => {
      const start = performance.now();
      const done = await call(callers[next++ % callers.length]);
      times.push(performance.now() - start);
      return done;
    },
    CLIENTS,
    SECONDS,
  );
  return { rate, times: times.sort((one, other) => one - other) };
}
