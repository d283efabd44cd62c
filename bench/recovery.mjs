// npm run bench:recovery: kills a worker with active runs repeatedly, and measures how long its callers wait. Then kills the API, starts
// another one at once, and measures how long it takes until a blocking call is answered.
// ROUNDS (10). RUNS (50): active runs of the killed worker. With Redis, if installed, then on Postgres alone.
import { spawn } from 'node:child_process';
import { randomBytes, randomUUID } from 'node:crypto';
import { rm } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { Target } from './client.mjs';
import { quantile } from './load.mjs';
import { numberSetting } from './number-setting.mjs';
import { readyOf } from './ready.mjs';
import { circumstances } from './report.mjs';
import { composeRedis, postgresOptions } from './stock.mjs';
import { temporaryFolder } from './temporary-folder.mjs';

const require = createRequire(import.meta.url);
const dist = (path) => fileURLToPath(new URL(`../dist/${path}`, import.meta.url));
const { findRedisBinary, startPostgres, startRedis } = require(dist('apps/local/src/services/index.js'));

const SYSTEM_KEY = randomBytes(32).toString('base64');
const ROUNDS = numberSetting('ROUNDS', 10);
const RUNS = numberSetting('RUNS', 50);
const CHUNK_MS = 100;
/** Long enough for the next worker to start; what is left of a round is canceled. */
const CHUNKS = 1_200;

const home = await temporaryFolder();
const postgres = await startPostgres(join(home, 'postgres'), postgresOptions());
const redis =
  findRedisBinary() &&
  (await startRedis(findRedisBinary(), join(home, 'redis'), { settings: composeRedis() }));
const table = {};
try {
  await run('libs/database/src/migrate-main.js');
  for (const [driver, url] of Object.entries({ ...(redis && { redis: redis.url }), postgres: '' })) {
    const { ofWorker, ofApi } = await measure({ REDIS_URL: url });
    table[`worker, ${driver}`] = figures(ofWorker);
    table[`API, ${driver}`] = figures(ofApi);
  }
} finally {
  await Promise.all([postgres.process.stop(), redis?.process.stop()]);
  await rm(home, { recursive: true, force: true });
}
console.log(circumstances(`${ROUNDS} rounds of ${RUNS} runs, kill -9 to speaking again.`));
console.table(table);

function figures(times) {
  const sorted = [...times].sort((a, b) => a - b);
  const show = (ms) => `${(ms / 1000).toFixed(2)} s`;
  const [p50, p99] = [0.5, 0.99].map((q) => show(quantile(sorted, q)));
  return { calls: sorted.length, p50, p99, max: show(sorted.at(-1)) };
}

/**
 * Milliseconds from each kill: of a worker to the first chunk of each run's next attempt, of the API to the answer of a blocking call at
 * the next one.
 */
async function measure(env) {
  let api = await start('api', env);
  const token = await tenantToken({ ...env, MANAGEMENT_PORT: new URL(api.managementUrl).port });
  const times = [];
  let victim = await start('worker', env);
  for (let round = 0; round < ROUNDS; round++) {
    const streams = Array.from({ length: RUNS }, () => follow(`${api.url}/agents/echo`, token));
    await Promise.all(streams.map(({ spoke }) => spoke));
    // Only now: all runs are in the hands of the one that is killed. A worker takes no runs over in its first half of a lease.
    const survivor = await start('worker', env);
    await delay(2_000);
    victim.child.kill('SIGKILL');
    const killed = performance.now();
    times.push(...(await Promise.all(streams.map(({ spokeAgain }) => spokeAgain))).map((at) => at - killed));
    await Promise.all(streams.map(({ cancel }) => cancel()));
    victim = survivor;
    process.stderr.write('.');
  }
  const ofApi = [];
  for (let round = 0; round < ROUNDS; round++) {
    api.child.kill('SIGKILL');
    const killed = performance.now();
    api = await start('api', env);
    const target = new Target('baton', `${api.url}/agents/echo`, { authorization: `Bearer ${token}` });
    await target.send();
    target.close();
    ofApi.push(performance.now() - killed);
    process.stderr.write('.');
  }
  for (const { child } of [api, victim]) child.kill('SIGKILL');
  return { ofWorker: times, ofApi };
}

/** One stream: the times of its events, and of the first event of another attempt. */
function follow(url, token) {
  let say, sayAgain;
  const spoke = new Promise((resolve) => (say = resolve));
  const spokeAgain = new Promise((resolve) => (sayAgain = resolve));
  const message = {
    messageId: randomUUID(),
    role: 'ROLE_USER',
    parts: [{ text: 'hello' }],
    metadata: { echo: { chunks: CHUNKS, delayMs: CHUNK_MS } },
  };
  let id;
  const read = async () => {
    const response = await post(url, token, 'SendStreamingMessage', { message });
    let begun = 0;
    let tail = '';
    for await (const bytes of response.body) {
      const records = (tail + Buffer.from(bytes).toString()).split('\n\n');
      tail = records.pop();
      for (const record of records) {
        id ??= /"task":\{"id":"([^"]+)"/.exec(record)?.[1];
        if (!record.includes('"artifactUpdate"') || record.includes('"append":true')) continue;
        begun += 1;
        if (begun === 1) say();
        else sayAgain(performance.now());
      }
    }
  };
  const done = read();
  const cancel = async () => {
    await post(url, token, 'CancelTask', { id });
    await done;
  };
  return { spoke, spokeAgain, cancel };
}

function post(url, token, method, params) {
  return fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'a2a-version': '1.0', authorization: `Bearer ${token}` },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
  });
}

async function tenantToken(env) {
  const slug = `bench-${randomUUID().slice(0, 8)}`;
  await run('apps/cli/src/main.js', env, 'tenants', 'create', slug);
  return (await run('apps/cli/src/main.js', env, 'tokens', 'create', '--tenant', slug)).trim();
}

function environment(env) {
  return {
    ...process.env,
    LOG_LEVEL: 'warn',
    HOST: '127.0.0.1',
    PORT: '0',
    MANAGEMENT_PORT: '0',
    DATABASE_URL: postgres.url,
    DATABASE_SYSTEM_KEY: SYSTEM_KEY,
    ...env,
  };
}

/** One process of Baton; resolves when it is ready. */
async function start(app, env) {
  const child = spawn(process.execPath, [dist(`apps/${app}/src/main.js`)], {
    env: environment(env),
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  });
  const { url, managementUrl } = await readyOf(child, app);
  return { child, url, managementUrl };
}

/** One command; what it printed. */
function run(file, env, ...args) {
  const child = spawn(process.execPath, [dist(file), ...args], {
    env: environment(env),
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let out = '';
  child.stdout.setEncoding('utf8').on('data', (text) => (out += text));
  return new Promise((resolve, reject) => {
    child.once('close', (code) =>
      code === 0 ? resolve(out) : reject(new Error(`${file} ended with ${code}`)),
    );
  });
}
