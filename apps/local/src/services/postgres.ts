import { withoutSecrets } from '@baton/config';
import getPort from 'get-port';
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { chownSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { inUrl, LOOPBACK } from '../loopback.js';
import {
  type Account,
  type PostgresBinaries,
  postgresBinaries,
  readableFolder,
  unprivilegedAccount,
} from './postgres-files.js';
import { type ServiceProcess, startService, stopLeftover, waitUntilReady } from './service-process.js';

const DATABASE = 'baton';
const OWNER = `${DATABASE}_owner`;

/** A private Postgres and the URL of its database `baton`, with the role `baton`, which is no superuser. */
export interface RunningPostgres {
  process: ServiceProcess;
  url: string;
  /** URL with the role that owns the tables: `baton`, unless there is another one. */
  ownerUrl: string;
}

export interface PostgresOptions {
  /** How the server is tuned. Default: as `npm start` tunes its own. `{}` leaves it as Postgres comes. */
  tuning?: Record<string, string>;
  /** Settings on top of the tuning, e.g. `fsync: 'off'` for tests. */
  settings?: Record<string, string>;
  /** Attributes of the role `baton`, e.g. `CREATEDB`. */
  roleAttributes?: string;
  /** Has the database and its tables belong to `baton_owner`, so that `baton` cannot change what guards them. */
  separateOwner?: boolean;
  /** Brings it back under the URL it had before. */
  at?: string;
  /** Folder with the `bin` of another Postgres, of any release. Default: the one that npm has installed. */
  programs?: string;
}

const ADDRESS = { listen_addresses: LOOPBACK, unix_socket_directories: '' };

// Settings of the server. Sessions set those that statements rely on (libs/postgres). Durable (fsync and synchronous_commit stay
// on); no replicas, so the WAL need not serve any.
const TUNING = {
  max_connections: '300',
  shared_buffers: '256MB',
  wal_level: 'minimal',
  max_wal_senders: '0',
  max_wal_size: '2GB',
  checkpoint_timeout: '15min',
  random_page_cost: '1.1',
  lc_messages: 'C',
};

/**
 * Starts an embedded Postgres on a free port of the loopback interface, and waits until it takes connections. Its state is in `folder`. If
 * its user may not go there, it is in another place, which `folder` remembers. Creates it the first time. A server that outlived its parent
 * is stopped first.
 */
export async function startPostgres(folder: string, options: PostgresOptions = {}): Promise<RunningPostgres> {
  mkdirSync(folder, { recursive: true });
  const account = unprivilegedAccount();
  const state = readableFolder(folder, account);
  const binaries = postgresBinaries(account, state, options.programs);
  const pidFile = join(folder, 'process.json');
  await stopLeftover(pidFile, 'SIGINT');

  const data = join(state, 'data');
  const passwordFile = join(folder, 'password');
  if (!existsSync(data)) await create(binaries, data, passwordFile, account, options);
  const ownerFile = join(folder, 'owner-password');
  if (options.separateOwner && !existsSync(ownerFile)) {
    await separateOwner(binaries, data, ownerFile, account);
  }

  const logins = join(data, 'pg_hba.conf');
  const roles = existsSync(ownerFile) ? [DATABASE, OWNER] : [DATABASE];
  // Clusters of earlier releases let no role in over IPv6.
  if (!readFileSync(logins, 'utf8').includes('::1')) writeFileSync(logins, loginsOf(roles));

  const port =
    options.at === undefined ? await getPort({ host: LOOPBACK }) : Number(new URL(options.at).port);
  const logFile = join(state, 'postgres.log');
  const settings = { ...ADDRESS, ...(options.tuning ?? TUNING), ...options.settings, port: String(port) };
  const process = startService({
    name: 'postgres',
    command: binaries.postgres,
    args: ['-D', data, ...asArguments(settings)],
    logFile,
    pidFile,
    stopSignal: 'SIGINT',
    account,
  });
  await waitUntilReady('Postgres', process, () => isReady(data, process.pid), logFile);
  const urlOf = (role: string, file: string): string =>
    `postgres://${role}:${readFileSync(file, 'utf8').trim()}@${inUrl(LOOPBACK)}:${port}/${DATABASE}`;
  const url = urlOf(DATABASE, passwordFile);
  return { process, url, ownerUrl: options.separateOwner ? urlOf(OWNER, ownerFile) : url };
}

const asArguments = (settings: Record<string, string> = {}): string[] =>
  Object.entries(settings).flatMap(([key, value]) => ['-c', `${key}=${value}`]);

/** The first time: a cluster whose only login is the role `baton`, with a random password, from this machine. */
async function create(
  binaries: PostgresBinaries,
  data: string,
  passwordFile: string,
  account: Account | undefined,
  { roleAttributes = '', settings, programs }: PostgresOptions,
): Promise<void> {
  // Made beside and renamed, so that a start that was broken off is never taken for a whole cluster.
  const partial = `${data}.partial`;
  rmSync(partial, { recursive: true, force: true });
  mkdirSync(partial, { mode: 0o700 });
  if (account) chownSync(partial, account.uid, account.gid);
  // Releases before 17 have no locale of their own.
  const locale =
    programs === undefined
      ? ['--locale=C', '--locale-provider=builtin', '--builtin-locale=C.UTF-8']
      : ['--locale=C.UTF-8'];
  const flags = ['--no-instructions', '--encoding=UTF8', '--username=postgres', '--auth=reject'];
  await run(binaries.initdb, ['-D', partial, ...flags, ...locale], account);

  const password = randomBytes(18).toString('base64url');
  writeFileSync(passwordFile, `${password}\n`, { mode: 0o600 });
  const statements = [
    `CREATE ROLE ${DATABASE} LOGIN ${roleAttributes} PASSWORD '${password}'`,
    `CREATE DATABASE ${DATABASE} OWNER ${DATABASE}`,
  ];
  // Single-user mode: no superuser ever needs to log in.
  await run(
    binaries.postgres,
    ['--single', '-D', partial, ...asArguments(settings), 'postgres'],
    account,
    `${statements.join('\n')}\n`,
  );
  writeFileSync(join(partial, 'pg_hba.conf'), loginsOf([DATABASE]));
  renameSync(partial, data);
}

const loginsOf = (roles: readonly string[]): string =>
  roles
    .flatMap((role) => ['127.0.0.1/32', '::1/128'].map((from) => `host all ${role} ${from} scram-sha-256\n`))
    .join('');

/** Relations of the schema, without what belongs to one of them. */
const OWNED = `SELECT oid::regclass AS name FROM pg_class c WHERE relnamespace = 'public'::regnamespace
  AND relkind IN ('r', 'p', 'v', 'm', 'S') AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.objid = c.oid AND d.deptype IN ('a', 'i')
    AND d.classid = 'pg_class'::regclass AND d.refclassid = 'pg_class'::regclass)`;

/**
 * Gives the database to a role of its own, and leaves `baton` the rights to read and write rows. May be repeated. The same
 * as in docker/create-baton-role.sh.
 */
export const SEPARATE_OWNER = [
  `DO $$ BEGIN IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = '${OWNER}') THEN CREATE ROLE baton_owner; END IF; END $$`,
  `GRANT baton TO baton_owner`,
  `ALTER DATABASE baton OWNER TO baton_owner`,
  // Without Redis, the queue makes tables in a schema of its own.
  `GRANT CREATE ON DATABASE baton TO baton`,
  `DO $$ DECLARE owned record; BEGIN FOR owned IN ${OWNED} LOOP EXECUTE format('ALTER TABLE %s OWNER TO baton_owner', owned.name); END LOOP; END $$`,
  `DO $$ DECLARE owned record; BEGIN FOR owned IN SELECT oid::regprocedure AS name FROM pg_proc WHERE pronamespace = 'public'::regnamespace LOOP EXECUTE format('ALTER ROUTINE %s OWNER TO baton_owner', owned.name); END LOOP; END $$`,
  `GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO baton`,
  `GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA public TO baton`,
  `ALTER DEFAULT PRIVILEGES FOR ROLE baton_owner GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO baton`,
  `ALTER DEFAULT PRIVILEGES FOR ROLE baton_owner GRANT USAGE, SELECT ON SEQUENCES TO baton`,
].map((statement) => statement.replaceAll(/\s+/g, ' '));

/** In a database that is not running: a new one, or one of an earlier release, whose tables belong to `baton`. */
async function separateOwner(
  binaries: PostgresBinaries,
  data: string,
  ownerFile: string,
  account: Account | undefined,
): Promise<void> {
  const password = randomBytes(18).toString('base64url');
  const login = `ALTER ROLE ${OWNER} LOGIN PASSWORD '${password}'`;
  const statements = [...SEPARATE_OWNER, login, ''].join('\n');
  await run(binaries.postgres, ['--single', '-D', data, DATABASE], account, statements);
  writeFileSync(join(data, 'pg_hba.conf'), loginsOf([DATABASE, OWNER]));
  // Last: until it is there, all of this is done again.
  writeFileSync(`${ownerFile}.new`, `${password}\n`, { mode: 0o600 });
  renameSync(`${ownerFile}.new`, ownerFile);
}

/** Runs a program to its end. If it fails, throws with its standard error. */
function run(command: string, args: string[], account: Account | undefined, input = ''): Promise<void> {
  return new Promise((resolve, reject) => {
    const ids = account ? { uid: account.uid, gid: account.gid } : {};
    const env = withoutSecrets();
    const child = spawn(command, args, { env, cwd: '/', stdio: ['pipe', 'ignore', 'pipe'], ...ids });
    let output = '';
    child.stderr.on('data', (chunk: Buffer) => (output += chunk.toString()));
    child.once('error', reject);
    child.once('close', (code) => {
      if (code === 0) resolve();
      else
        reject(new Error(`Postgres could not be set up (${command}: exit code ${code}):\n${output.trim()}`));
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
