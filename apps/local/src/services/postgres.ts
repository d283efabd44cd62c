import getPort from 'get-port';
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { chownSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  type Account,
  type PostgresBinaries,
  postgresBinaries,
  readableFolder,
  unprivilegedAccount,
} from './postgres-files.js';
import { type ServiceProcess, startService, stopLeftover, waitUntilReady } from './service-process.js';

const DATABASE = 'baton';

/** A private Postgres and the URL of its database `baton`, whose owner `baton` is no superuser. */
export interface RunningPostgres {
  process: ServiceProcess;
  url: string;
}

export interface PostgresOptions {
  /** Settings of the server on top of ours, e.g. `fsync: 'off'` for tests. */
  settings?: Record<string, string>;
  /** Attributes of the role `baton`, e.g. `CREATEDB`. */
  roleAttributes?: string;
  /** Brings it back under the URL it had before. */
  at?: string;
}

// Durable (fsync and synchronous_commit stay on); no replicas, so the log of writes need not serve any.
const SETTINGS = {
  listen_addresses: '127.0.0.1',
  unix_socket_directories: '',
  max_connections: '300',
  shared_buffers: '256MB',
  wal_level: 'minimal',
  max_wal_senders: '0',
  max_wal_size: '2GB',
  checkpoint_timeout: '15min',
  random_page_cost: '1.1',
  jit: 'off',
  lc_messages: 'C',
};

/**
 * Starts a Postgres of our own on a free port of the loopback interface, with its state in `folder` (or, where
 * its user may not go there, in a place that `folder` remembers), and waits until it takes connections. Creates
 * it the first time. One that outlived its parent is stopped first.
 */
export async function startPostgres(folder: string, options: PostgresOptions = {}): Promise<RunningPostgres> {
  mkdirSync(folder, { recursive: true });
  const account = unprivilegedAccount();
  const state = readableFolder(folder, account);
  const binaries = postgresBinaries(account, state);
  const pidFile = join(folder, 'process.json');
  await stopLeftover(pidFile, 'SIGINT');

  const data = join(state, 'data');
  const passwordFile = join(folder, 'password');
  if (!existsSync(data)) await create(binaries, data, passwordFile, account, options.roleAttributes);

  const port =
    options.at === undefined ? await getPort({ host: '127.0.0.1' }) : Number(new URL(options.at).port);
  const logFile = join(state, 'postgres.log');
  const settings = { ...SETTINGS, ...options.settings, port: String(port) };
  const process = startService({
    name: 'postgres',
    command: binaries.postgres,
    args: ['-D', data, ...Object.entries(settings).flatMap(([key, value]) => ['-c', `${key}=${value}`])],
    logFile,
    pidFile,
    stopSignal: 'SIGINT',
    account,
  });
  await waitUntilReady('Postgres', process, () => isReady(data, process.pid), logFile);
  const password = readFileSync(passwordFile, 'utf8').trim();
  return { process, url: `postgres://baton:${password}@127.0.0.1:${port}/baton` };
}

/** The first time: a cluster whose only login is the role `baton`, with a random password, from this machine. */
async function create(
  binaries: PostgresBinaries,
  data: string,
  passwordFile: string,
  account: Account | undefined,
  roleAttributes = '',
): Promise<void> {
  // Made beside and renamed, so that a start that was broken off is never taken for a whole cluster.
  const partial = `${data}.partial`;
  rmSync(partial, { recursive: true, force: true });
  mkdirSync(partial, { mode: 0o700 });
  if (account) chownSync(partial, account.uid, account.gid);
  const flags = ['--no-instructions', '--encoding=UTF8', '--locale=C', '--locale-provider=builtin'];
  const authentication = ['--builtin-locale=C.UTF-8', '--username=postgres', '--auth=reject'];
  await run(binaries.initdb, ['-D', partial, ...flags, ...authentication], account);

  const password = randomBytes(18).toString('base64url');
  writeFileSync(passwordFile, `${password}\n`, { mode: 0o600 });
  const statements = [
    `CREATE ROLE ${DATABASE} LOGIN ${roleAttributes} PASSWORD '${password}'`,
    `CREATE DATABASE ${DATABASE} OWNER ${DATABASE}`,
  ];
  // Single-user mode: no superuser ever needs to log in.
  await run(
    binaries.postgres,
    ['--single', '-D', partial, 'postgres'],
    account,
    `${statements.join('\n')}\n`,
  );
  writeFileSync(join(partial, 'pg_hba.conf'), `host all ${DATABASE} 127.0.0.1/32 scram-sha-256\n`);
  renameSync(partial, data);
}

/** Runs a program to its end. Throws with what it said on standard error if it fails. */
function run(command: string, args: string[], account: Account | undefined, input = ''): Promise<void> {
  return new Promise((resolve, reject) => {
    const ids = account ? { uid: account.uid, gid: account.gid } : {};
    const child = spawn(command, args, { cwd: '/', stdio: ['pipe', 'ignore', 'pipe'], ...ids });
    let said = '';
    child.stderr.on('data', (chunk: Buffer) => (said += chunk.toString()));
    child.once('error', reject);
    child.once('close', (code) => {
      if (code === 0) resolve();
      else reject(new Error(`Postgres could not be set up (${command}: exit code ${code}):\n${said.trim()}`));
    });
    child.stdin.on('error', () => undefined); // It may end without reading.
    child.stdin.end(input);
  });
}

/** The server notes its state in the eighth line of its pid file. */
function isReady(data: string, pid: number): boolean {
  const file = join(data, 'postmaster.pid');
  if (!existsSync(file)) return false;
  const lines = readFileSync(file, 'utf8').split('\n');
  return lines[0] === String(pid) && lines[7]?.trim() === 'ready';
}
