// The sides of the comparisons: Baton as `npm start` runs it, the skeletons, and the official SDK's own server. Each runs in
// processes of its own, on a Postgres (stock.mjs) and a Redis of its own.
import { fork, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { readFile, rm, writeFile } from 'node:fs/promises';
import http from 'node:http';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import services from '../dist/apps/local/src/services/index.js';
import { Target } from './client.mjs';
import { TABLES as SDK_TABLES } from './sdk-server.mjs';
import { TABLES as BARE_TABLES } from './skeletons/bare.mjs';
import { TABLES as HONEST_TABLES } from './skeletons/honest.mjs';
import { NO_LIMITS } from './limits.mjs';
import { composeRedis, postgresOptions } from './stock.mjs';
import { temporaryFolder } from './temporary-folder.mjs';

const MAIN = fileURLToPath(new URL('../dist/apps/local/src/main.js', import.meta.url));

/**
 * Baton with everything durable: Postgres with fsync, Redis if there is one, API and workers as processes.
 * @param which Postgres: see `postgresOptions`
 */
export async function startBaton({ workers, env: more = {}, limits = NO_LIMITS, postgres: which }) {
  const home = await temporaryFolder();
  const options = { ...postgresOptions(which), separateOwner: true };
  const postgres = await services.startPostgres(join(home, 'stock'), options);
  const redis = (more.REDIS_URL ?? process.env.REDIS_URL) === undefined ? await startRedis(home) : undefined;
  const systemKey = randomBytes(32).toString('base64');
  // For the command line.
  await writeFile(join(home, 'database-system-key'), systemKey);
  const managementPort = await freePort();
  const grpcPort = await freePort();
  const env = {
    ...process.env,
    BATON_HOME: home,
    DATABASE_URL: postgres.url,
    MIGRATE_DATABASE_URL: postgres.ownerUrl,
    DATABASE_SYSTEM_KEY: systemKey,
    PORT: String(await freePort()),
    MANAGEMENT_PORT: String(managementPort),
    GRPC_PORT: String(grpcPort),
    WORKERS: String(workers),
    LOG_LEVEL: 'warn',
    ...(redis && { REDIS_URL: redis.url }),
    ...limits,
    ...more,
  };
  const child = spawn(process.execPath, [MAIN], { env, stdio: ['ignore', 'pipe', 'inherit'] });
  await waitFor(child.stdout, 'curl');
  const { url, token } = JSON.parse(await readFile(join(home, 'demo.json'), 'utf8'));
  const { databaseUrl, redisUrl } = JSON.parse(await readFile(join(home, 'runtime.json'), 'utf8'));
  const name = which === undefined ? 'baton' : `baton on ${which}`;
  const target = new Target(name, `${url}/agents/echo`, { authorization: `Bearer ${token}` });
  return {
    target,
    url,
    metricsUrl: `http://127.0.0.1:${managementPort}/metrics`,
    grpcUrl: `http://127.0.0.1:${grpcPort}`,
    token,
    home,
    ownerUrl: postgres.ownerUrl,
    databaseUrl,
    redisUrl,
    processes: () => ({ ...processesOf(home, workers), postgres: postgres.process.pid }),
    stop: async () => {
      target.close();
      child.kill('SIGTERM');
      await new Promise((resolve) => child.once('exit', resolve));
      await Promise.all([postgres.process.stop(), redis?.process.stop()]);
      await rm(home, { recursive: true, force: true });
    },
  };
}

/** A Redis in the folder where `npm start` has its own. Undefined: none is installed. */
async function startRedis(home) {
  const binary = services.findRedisBinary();
  if (!binary) return undefined;
  return services.startRedis(binary, join(home, 'redis'), { settings: composeRedis() });
}

/** The processes of Baton by name. Their ids may change: those that end are started again. */
function processesOf(home, workers) {
  const files = { api: 'api.process.json' };
  if (existsSync(join(home, 'redis/process.json'))) files.redis = 'redis/process.json';
  for (let i = 1; i <= workers; i++) files[i === 1 ? 'worker' : `worker ${i}`] = `worker-${i}.process.json`;
  const pidIn = (file) => JSON.parse(readFileSync(join(home, file), 'utf8')).pid;
  return Object.fromEntries(Object.entries(files).map(([name, file]) => [name, pidIn(file)]));
}

/** One skeleton (`bare` or `honest`): an API process and a worker process. */
export async function startSkeleton(name) {
  const own = await ownServices({ tables: name === 'bare' ? BARE_TABLES : HONEST_TABLES, redis: true });
  const token = randomBytes(16).toString('hex');
  const main = fileURLToPath(new URL(`skeletons/${name}.mjs`, import.meta.url));
  const api = await startProcess(main, ['api'], { ...own.env, TOKEN: token });
  const worker = await startProcess(main, ['worker'], own.env);
  const url = `http://127.0.0.1:${api.port}/`;
  const target = new Target(`${name} skeleton`, url, { authorization: `Bearer ${token}` });
  return sideOf(target, own, { api: api.child, worker: worker.child });
}

/** The SDK's server in one process, with its store in `memory` or in `postgres`. */
export async function startSdkServer(store) {
  const own = await ownServices({ tables: store === 'postgres' ? SDK_TABLES : undefined, redis: false });
  const main = fileURLToPath(new URL('sdk-server.mjs', import.meta.url));
  const { child, port } = await startProcess(main, ['serve'], own.env);
  const target = new Target(`SDK, ${store}`, `http://127.0.0.1:${port}/`);
  return sideOf(target, own, { api: child });
}

function sideOf(target, own, children) {
  const pids = Object.entries(children).map(([name, { pid }]) => [name, pid]);
  return {
    target,
    databaseUrl: own.env.DATABASE_URL,
    redisUrl: own.env.REDIS_URL,
    processes: () => ({ ...Object.fromEntries(pids), ...own.pids }),
    stop: async () => {
      target.close();
      for (const child of Object.values(children)) child.kill('SIGKILL');
      await own.stop();
    },
  };
}

/**
 * A Postgres with these tables, a Redis if wanted, and how processes find them.
 * @param roleAttributes of the role in `DATABASE_URL`, e.g. `CREATEDB`
 */
export async function ownServices({ tables, redis, roleAttributes }) {
  const home = await temporaryFolder();
  const env = {};
  const pids = {};
  const running = [];
  if (tables) {
    const options = { ...postgresOptions(), roleAttributes };
    const postgres = await services.startPostgres(join(home, 'postgres'), options);
    running.push(postgres.process);
    pids.postgres = postgres.process.pid;
    env.DATABASE_URL = postgres.url;
    const client = new pg.Client(postgres.url);
    await client.connect();
    await client.query(tables);
    await client.end();
  }
  if (redis) {
    const started = await startRedis(home);
    if (!started) throw new Error('The skeletons need redis-server or valkey-server on PATH.');
    const { process: server, url } = started;
    running.push(server);
    pids.redis = server.pid;
    env.REDIS_URL = url;
  }
  const stop = async () => {
    await Promise.all(running.map((service) => service.stop()));
    await rm(home, { recursive: true, force: true });
  };
  return { env, pids, stop };
}

/** A program whose first message has its port: it is ready. */
export async function startProcess(main, args, env) {
  const child = fork(main, args, { env: { ...process.env, NODE_ENV: 'production', ...env } });
  const { port } = await new Promise((resolve, reject) => {
    child.once('message', resolve);
    child.once('exit', (code) => reject(new Error(`${main} ${args.join(' ')} ended with ${code}`)));
  });
  return { child, port };
}

/** A port that is free now. */
export async function freePort() {
  const server = http.createServer();
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address();
  await new Promise((resolve) => server.close(resolve));
  return port;
}

function waitFor(stream, word) {
  return new Promise((resolve, reject) => {
    let seen = '';
    stream.setEncoding('utf8').on('data', (chunk) => {
      seen += chunk;
      if (seen.includes(word)) resolve();
    });
    stream.on('end', () => reject(new Error(`Baton did not start:\n${seen}`)));
  });
}
