// A Baton of several API and worker processes, everything durable, on a Postgres and a Redis of its own.
import { randomBytes } from 'node:crypto';
import { execFile, fork } from 'node:child_process';
import { rm } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import pg from 'pg';
import { Target } from './client.mjs';
import { NO_LIMITS } from './limits.mjs';
import { readyOf } from './ready.mjs';
import { postgresOptions } from './stock.mjs';
import { temporaryFolder } from './temporary-folder.mjs';

const run = promisify(execFile);

/**
 * @param dist the build to run
 * @param driver `redis` or `postgres`
 * @param env settings of all processes
 */
export async function startCluster({ dist, driver = 'redis', apis, workers, env: settings = {} }) {
  const root = resolve(dist ?? fileURLToPath(new URL('../dist', import.meta.url)));
  const services = createRequire(import.meta.url)(`${root}/apps/local/src/services/index.js`);
  const home = await temporaryFolder();
  const postgres = await services.startPostgres(join(home, 'postgres'), postgresOptions());
  const redis =
    driver === 'redis'
      ? await services.startRedis(services.findRedisBinary(), join(home, 'redis'))
      : undefined;
  const systemKey = randomBytes(32).toString('base64');
  const env = {
    ...process.env,
    DATABASE_URL: postgres.url,
    DATABASE_SYSTEM_KEY: systemKey,
    REDIS_URL: redis?.url ?? '',
    LOG_LEVEL: 'warn',
    HOST: '127.0.0.1',
    PORT: '0',
    MANAGEMENT_PORT: '0',
    ...NO_LIMITS,
    ...settings,
  };
  await run(process.execPath, [`${root}/libs/database/src/migrate-main.js`], { env });
  const children = [];
  let management;
  const pids = { postgres: postgres.process.pid, ...(redis && { redis: redis.process.pid }) };
  const start = async (kind, i) => {
    const child = fork(`${root}/apps/${kind}/src/main.js`, {
      env,
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    });
    children.push(child);
    pids[`${kind} ${i + 1}`] = child.pid;
    const { url, managementUrl } = await readyOf(child, kind);
    if (managementUrl) management ??= new URL(managementUrl);
    return url;
  };
  const several = (count, kind) => Promise.all(Array.from({ length: count }, (_, i) => start(kind, i)));
  const [urls] = await Promise.all([several(apis, 'api'), several(workers, 'worker')]);
  /** What the command line prints. */
  const cli = async (...args) =>
    (
      await run(process.execPath, [`${root}/apps/cli/src/main.js`, ...args], {
        env: { ...env, MANAGEMENT_PORT: management.port },
      })
    ).stdout;
  const rowsOf = (text, values) => query(postgres.url, text, values, systemKey);
  let made = 0;
  return {
    cli,
    /** Rows of all tenants. */
    query: rowsOf,
    databaseUrl: postgres.url,
    redisUrl: redis?.url,
    /** Process ids by name: `api 1`, `worker 2`, `postgres`, `redis`. */
    processes: () => pids,
    /** A new tenant: one caller per API. @param scopes of its token, comma-separated */
    async tenant({ weight, agent = 'echo', scopes } = {}) {
      const slug = `bench-${++made}`;
      const { id } = JSON.parse(await cli('tenants', 'create', slug, '--json'));
      const token = JSON.parse(
        await cli('tokens', 'create', '--tenant', slug, ...(scopes ? ['--scopes', scopes] : []), '--json'),
      ).token;
      if (weight) await rowsOf('UPDATE tenants SET limits = $1 WHERE id = $2', [{ weight }, id]);
      const headers = { authorization: `Bearer ${token}` };
      const targets = urls.map((url) => new Target(slug, `${url}/agents/${agent}`, headers));
      return { id, targets };
    },
    async stop() {
      const alive = children.filter(({ exitCode, signalCode }) => exitCode === null && signalCode === null);
      for (const child of alive) child.kill('SIGTERM');
      await Promise.all(alive.map((child) => new Promise((done) => child.once('exit', done))));
      await redis?.process.stop(5000);
      await postgres.process.stop(5000);
      await rm(home, { recursive: true, force: true });
    },
  };
}

/** Rows of a database. @param systemKey of the database: those of all tenants */
export async function query(url, text, values = [], systemKey) {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    if (systemKey) {
      const scope = `SELECT set_config('baton.tenant', 'system', false), set_config('baton.system_key', $1, false)`;
      await client.query(scope, [systemKey]);
    }
    return (await client.query(text, values)).rows;
  } finally {
    await client.end();
  }
}
