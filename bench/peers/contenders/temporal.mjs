import { bundleWorkflowCode, DefaultLogger } from '@temporalio/worker';
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { rm, writeFile } from 'node:fs/promises';
import net from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { ownServices, startProcess } from '../../servers.mjs';
import { temporaryFolder } from '../../temporary-folder.mjs';
import { eventsIn, post, until } from './caller.mjs';
import { programPath } from './programs.mjs';

const MAIN = fileURLToPath(new URL('../servers/temporal.mjs', import.meta.url));
const WORKFLOWS = fileURLToPath(new URL('../servers/temporal-workflows.mjs', import.meta.url));
const run = promisify(execFile);

/** The server with all its services in one process, on Postgres; an API and a worker with the SDK for TypeScript. */
export async function startTemporal({ workers = 1 } = {}) {
  const own = await ownServices({ tables: 'SELECT', roleAttributes: 'CREATEDB' });
  const home = await temporaryFolder();
  await createTables(own.env.DATABASE_URL);
  const { ports, server } = await startServer(own.env.DATABASE_URL, home);
  const namespaces = `http://127.0.0.1:${ports.FRONTEND_HTTP_PORT}/cluster/namespaces`;
  const namespace = { namespace: 'default', workflowExecutionRetentionPeriod: '86400s' };
  await until(() => post(namespaces, JSON.stringify(namespace), { 'content-type': 'application/json' }));
  // As its documentation advises for production: the worker need not make it at its start.
  const bundle = join(home, 'workflows.js');
  const logger = new DefaultLogger('ERROR');
  await writeFile(bundle, (await bundleWorkflowCode({ workflowsPath: WORKFLOWS, logger })).code);
  const env = { TEMPORAL_ADDRESS: `127.0.0.1:${ports.FRONTEND_GRPC_PORT}`, WORKFLOW_BUNDLE: bundle };
  const api = await startProcess(MAIN, ['api'], env);
  const started = Array.from({ length: workers }, () => startProcess(MAIN, ['worker'], env));
  const [worker, ...others] = (await Promise.all(started)).map(({ child }) => child);
  const url = `http://127.0.0.1:${api.port}`;
  await until(() => post(`${url}/send`, 'hello'));
  return {
    name: 'Temporal',
    setup: 'server, API, worker, Postgres',
    databaseUrl: own.env.DATABASE_URL,
    processes: () => ({ server: server.pid, api: api.child.pid, worker: worker.pid, ...own.pids }),
    send: () => post(`${url}/send`, 'hello'),
    steps: () => post(`${url}/steps`, 'hello'),
    stream: async (chunks) => eventsIn(await post(`${url}/stream`, String(chunks))),
    sleep: () => post(`${url}/sleep`, '3600000'),
    ticker: (observer) => post(`${url}/ticker`, observer),
    kill: async () => {
      worker.removeAllListeners('exit');
      worker.kill('SIGKILL');
      return worker.pid;
    },
    stop: async () => {
      for (const child of [api.child, worker, ...others, server]) child.kill('SIGKILL');
      await own.stop();
      await rm(home, { recursive: true, force: true });
    },
  };
}

/** The two databases of the server, by its own tool. */
async function createTables(databaseUrl) {
  const { hostname, port, username, password } = new URL(databaseUrl);
  const login = ['--pl', 'postgres12', '--ep', hostname, '-p', port, '-u', username, '--pw', password];
  for (const [database, schema] of [
    ['temporal', 'temporal'],
    ['temporal_visibility', 'visibility'],
  ]) {
    const tool = (...args) => run(programPath('temporal-sql-tool'), [...login, '--db', database, ...args]);
    await tool('create');
    await tool('setup-schema', '-v', '0.0');
    await tool('update-schema', '--schema-name', `postgresql/v12/${schema}`);
  }
}

/** Settings as in its container image, on ports of the loopback interface. */
async function startServer(databaseUrl, home) {
  const { hostname, port, username, password } = new URL(databaseUrl);
  const names = ['FRONTEND', 'MATCHING', 'HISTORY', 'WORKER'].flatMap((service) => [
    `${service}_GRPC_PORT`,
    `${service}_MEMBERSHIP_PORT`,
  ]);
  const ports = {};
  for (const name of ['FRONTEND_HTTP_PORT', ...names]) ports[name] = String(await lowPort());
  const dynamic = join(home, 'dynamic.yaml');
  await writeFile(dynamic, '');
  const env = {
    ...process.env,
    ...ports,
    DB: 'postgres12',
    POSTGRES_SEEDS: hostname,
    DB_PORT: port,
    POSTGRES_USER: username,
    POSTGRES_PWD: password,
    DYNAMIC_CONFIG_FILE_PATH: dynamic,
    LOG_LEVEL: process.env.DEBUG ? 'warn' : 'fatal',
  };
  const server = spawn(programPath('temporal-server'), ['--allow-no-auth', 'start'], {
    env,
    stdio: process.env.DEBUG ? 'inherit' : 'ignore',
  });
  return { ports, server };
}

/** A free port that fits into its tables: a smallint. The kernel gives away higher ones. */
async function lowPort() {
  const port = 10_000 + Math.floor(Math.random() * 20_000);
  const server = net.createServer().listen(port, '127.0.0.1');
  const free = await once(server, 'listening').then(
    () => true,
    () => false,
  );
  server.close();
  return free ? port : lowPort();
}
