import { chmodSync, chownSync, existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { Client } from 'pg';
import { freePort } from './ports.js';
import { unprivilegedAccount } from '../../apps/local/src/services/postgres-files.js';
import { startService, waitUntilReady } from '../../apps/local/src/services/service-process.js';

const SYSTEM_FOLDERS = ['/usr/sbin', '/usr/local/sbin'];

/** The path of `pgbouncer`, if there is one. Packages put it where only root has a PATH to. */
export const findPgBouncer = (): string | undefined =>
  [...(process.env.PATH ?? '').split(delimiter), ...SYSTEM_FOLDERS]
    .map((folder) => join(folder, 'pgbouncer'))
    .find((file) => existsSync(file));

/** A PgBouncer that gives each transaction one of a few connections to Postgres. */
export interface PgBouncer {
  /** The database through it. */
  url: string;
  /** Ends it without a goodbye. */
  crash(): Promise<void>;
  /** Starts it again under the same URL. */
  restart(): Promise<void>;
  /** Stops it and removes its files. */
  remove(): Promise<void>;
}

/**
 * @param binary its path
 * @param databaseUrl where it leads to
 * @param connections how many it opens to Postgres
 */
export async function startPgBouncer(
  binary: string,
  databaseUrl: string,
  connections: number,
): Promise<PgBouncer> {
  const folder = mkdtempSync(join(tmpdir(), `baton-test-${process.pid}-`));
  const account = unprivilegedAccount();
  const target = new URL(databaseUrl);
  const port = await freePort();
  const write = (name: string, lines: string[]): string => {
    const file = join(folder, name);
    writeFileSync(file, `${lines.join('\n')}\n`, { mode: 0o600 });
    if (account) chownSync(file, account.uid, account.gid);
    return file;
  };
  chmodSync(folder, 0o711);
  const users = write('users', [`"${target.username}" "${target.password}"`]);
  const configuration = write('pgbouncer.ini', [
    '[databases]',
    `* = host=${target.hostname} port=${target.port}`,
    '[pgbouncer]',
    'listen_addr = 127.0.0.1',
    `listen_port = ${port}`,
    'unix_socket_dir =',
    'auth_type = plain',
    `auth_file = ${users}`,
    'pool_mode = transaction',
    `default_pool_size = ${connections}`,
    'max_client_conn = 1000',
    // After a crash of Postgres it asks again at once.
    'server_login_retry = 1',
  ]);
  const url = new URL(databaseUrl);
  url.port = String(port);
  const start = async () => {
    const logFile = join(folder, 'pgbouncer.log');
    const running = startService({
      name: 'pgbouncer',
      command: binary,
      args: [configuration],
      logFile,
      pidFile: join(folder, 'process.json'),
      stopSignal: 'SIGTERM',
      account,
    });
    await waitUntilReady('PgBouncer', running, () => answers(url.toString()), logFile);
    return running;
  };
  let running = await start();
  return {
    url: url.toString(),
    crash: async () => {
      running.kill();
      await running.exited;
    },
    restart: async () => {
      running = await start();
    },
    remove: async () => {
      await running.stop(5000);
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

async function answers(connectionString: string): Promise<boolean> {
  const client = new Client({ connectionString });
  client.on('error', () => undefined);
  try {
    await client.connect();
    await client.query('SELECT 1');
    return true;
  } catch {
    return false;
  } finally {
    await client.end().catch(() => undefined);
  }
}
