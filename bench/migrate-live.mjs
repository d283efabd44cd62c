// npm run bench:migrate: does traffic continue while the schema of a full database changes? Processes of the last release
// serve callers. Meanwhile `npm run migrate` of this release migrates the database, fills a column of every task and builds
// two indexes.
// TASKS (1000000) of EVENTS (3) each, CLIENTS (8), SECONDS (15) before and after, DRIVER (redis if there is one).
import { spawn } from 'node:child_process';
import { cp, mkdir, rm, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { Target } from './client.mjs';
import { connect, fillTenant, tenantsOf } from './fill.mjs';
import { quantile } from './load.mjs';
import { numberSetting } from './number-setting.mjs';
import { readyOf } from './ready.mjs';
import { circumstances } from './report.mjs';
import { postgresOptions } from './stock.mjs';
import { temporaryFolder } from './temporary-folder.mjs';

const require = createRequire(import.meta.url);
const root = fileURLToPath(new URL('..', import.meta.url));
const { findRedisBinary, startPostgres, startRedis } = require(
  join(root, 'dist/apps/local/src/services/index.js'),
);
require('../test/support/load-typescript.js');
const { RELEASED, releasedBuild } = require('../test/support/released-build.ts');

const TASKS = numberSetting('TASKS', 1_000_000);
const EVENTS = numberSetting('EVENTS', 3);
const CLIENTS = numberSetting('CLIENTS', 8);
const SECONDS = numberSetting('SECONDS', 15);

const HEAVY = `ALTER TABLE "tasks" ADD COLUMN "bench" INTEGER;
SELECT set_config('baton.tenant', 'system', true);
-- baton: backfill table=tasks key=tenant_id,id rows=2000
UPDATE "tasks" t SET "bench" = 1 WHERE /* slice of t */ true;
-- baton: concurrently
CREATE INDEX "tasks_bench_idx" ON "tasks"("tenant_id", "bench", "id");
-- baton: concurrently
CREATE INDEX "task_events_bench_idx" ON "task_events"("tenant_id", "created_at");`;

const released = await releasedBuild();
if (!released) throw new Error(`No commit ${RELEASED.commit} here: this needs the history of git.`);
const home = await temporaryFolder();
const postgres = await startPostgres(join(home, 'postgres'), postgresOptions());
const redis =
  process.env.DRIVER !== 'postgres' &&
  findRedisBinary() &&
  (await startRedis(findRedisBinary(), join(home, 'redis')));
const env = {
  ...process.env,
  LOG_LEVEL: 'warn',
  HOST: '127.0.0.1',
  PORT: '0',
  DATABASE_URL: postgres.url,
  REDIS_URL: redis ? redis.url : '',
};
const processes = [];
try {
  await run(released, 'libs/database/src/migrate-main.js');
  await run(released, 'apps/cli/src/main.js', 'tenants', 'create', 'demo');
  const token = (await run(released, 'apps/cli/src/main.js', 'tokens', 'create', '--tenant', 'demo')).trim();
  await fill();
  const api = await start('api');
  await start('worker');
  const target = new Target('baton', `${api}/agents/echo`, { authorization: `Bearer ${token}` });
  await report(target, await folderWith(HEAVY));
  target.close();
} finally {
  for (const child of processes) child.kill('SIGKILL');
  await Promise.all([postgres.process.stop(), redis && redis.process.stop()]);
  await rm(home, { recursive: true, force: true });
}

async function fill() {
  const client = await connect(postgres.url);
  const [demo] = await tenantsOf(client, 0);
  const begin = performance.now();
  await fillTenant(client, demo, TASKS, EVENTS, (events) => {
    if (events % (EVENTS * 100_000) === 0) process.stderr.write(`${events.toLocaleString('en')} events\n`);
  });
  await client.query('VACUUM (ANALYZE)');
  await client.end();
  process.stderr.write(`filled in ${Math.round((performance.now() - begin) / 1000)} s\n`);
}

/** This build's migrations, and a heavy one behind them. */
async function folderWith(sql) {
  const folder = join(home, 'migrations');
  await cp(join(root, 'prisma/migrations'), folder, { recursive: true });
  await mkdir(join(folder, '99990101000000_bench'));
  await writeFile(join(folder, '99990101000000_bench/migration.sql'), sql);
  return folder;
}

/** Callers continue from the first phase to the last; each call counts in the phase in which it ends. */
async function report(target, folder) {
  const calls = [];
  const failures = [];
  let ended = false;
  const caller = async () => {
    while (!ended) {
      const begin = performance.now();
      await target.send().catch((error) => failures.push(String(error)));
      calls.push({ end: performance.now(), ms: performance.now() - begin });
    }
  };
  const callers = Array.from({ length: CLIENTS }, caller);
  await delay(5_000);
  const marks = [performance.now()];
  await delay(SECONDS * 1000);
  marks.push(performance.now());
  await run(join(root, 'dist'), 'libs/database/src/migrate-main.js', '--folder', folder);
  marks.push(performance.now());
  await delay(SECONDS * 1000);
  marks.push(performance.now());
  ended = true;
  await Promise.all(callers);
  const rows = ['before', 'during the migration', 'after'].map((name, phase) => {
    const [from, to] = [marks[phase], marks[phase + 1]];
    const times = calls.filter(({ end }) => end >= from && end < to).map(({ ms }) => ms);
    times.sort((a, b) => a - b);
    const show = (ms) => Math.round(ms ?? 0);
    return [
      name,
      {
        seconds: show((to - from) / 1000),
        'sends/s': Math.round((times.length / (to - from)) * 10_000) / 10,
        'p50 ms': show(quantile(times, 0.5)),
        'p99 ms': show(quantile(times, 0.99)),
        'longest ms': show(times.at(-1)),
      },
    ];
  });
  console.log(
    circumstances(
      `${TASKS.toLocaleString('en')} tasks of ${EVENTS} events, ${CLIENTS} callers, release ${RELEASED.version} to this one.`,
    ),
  );
  console.table(Object.fromEntries(rows));
  console.log(`failed calls: ${failures.length}${failures.length > 0 ? `, the first: ${failures[0]}` : ''}`);
}

/** A process of the last release; resolves with its URL when it is ready. */
async function start(app) {
  const child = spawn(process.execPath, [join(released, `apps/${app}/src/main.js`)], {
    env,
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  });
  processes.push(child);
  return (await readyOf(child, app)).url;
}

/** Runs a command of a build. @returns its output */
function run(dist, file, ...args) {
  const child = spawn(process.execPath, [join(dist, file), ...args], {
    env,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let out = '';
  child.stdout.setEncoding('utf8').on('data', (text) => {
    out += text;
    if (file.includes('migrate')) process.stderr.write(text);
  });
  return new Promise((resolve, reject) => {
    child.once('close', (code) =>
      code === 0 ? resolve(out) : reject(new Error(`${file} ended with ${code}`)),
    );
  });
}
