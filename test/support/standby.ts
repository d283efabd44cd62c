import { execFileSync } from 'node:child_process';
import { appendFileSync, chmodSync, chownSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import {
  postgresBinaries,
  readableFolder,
  unprivilegedAccount,
} from '../../apps/local/src/services/postgres-files.js';
import { migrate } from '../../libs/database/src/migrations/migrate.js';
import { TcpProxy } from '../chaos/tcp-proxy.js';
import { CERTIFICATE, KEY, OTHER_CERTIFICATE } from './certificates.js';
import type { TestDatabase } from './database.js';
import { CHEAP_LOGINS, programs, startTestPostgres } from './postgres.js';

/** A Postgres whose commits wait for a streaming standby, both behind one address, as an operator has them. */
export interface ReplicatedPostgres extends TestDatabase {
  /** The standby itself, past the address. */
  standbyUrl: string;
  /** A CA that has not signed the certificate of these servers. */
  otherCaFile: string;
  /** Ends the primary as a power cut does. */
  crashPrimary(): Promise<void>;
  /** Has the address lead to the standby, which is read-only until it is promoted. */
  leadToStandby(): void;
  promoteStandby(): void;
  /** Ends the standby, and starts it again under its URL. */
  stopStandby(): Promise<void>;
  restartStandby(): Promise<void>;
}

/**
 * @param isSynchronous whether commits wait for the standby
 * @param applyDelayMs the standby replays a commit after this time at the earliest. The role `baton` may pause what it replays.
 */
export async function startReplicatedPostgres({
  isSynchronous = true,
  applyDelayMs = 0,
} = {}): Promise<ReplicatedPostgres> {
  const root = mkdtempSync(join(tmpdir(), `baton-test-${process.pid}-`));
  chmodSync(root, 0o711);
  const [first, second] = [join(root, 'first'), join(root, 'second')];
  const account = unprivilegedAccount();
  const ids = account ? { uid: account.uid, gid: account.gid } : {};
  const seed = process.env.TEST_POSTGRES_SEED;
  if (seed) execFileSync('cp', ['-a', `${seed}/.`, first]);
  const settings = { shared_buffers: '64MB', wal_level: 'replica', max_wal_senders: '10', ...CHEAP_LOGINS };
  // Once with the log of writes that a standby reads. The copy is then the base backup.
  const plain = await startTestPostgres(first, { settings });
  if (!seed) await migrate(plain.url);
  await plain.process.stop(60_000);
  const state = readableFolder(first, account);
  const { postgres } = postgresBinaries(account, state, programs);
  const data = join(state, 'data');
  execFileSync(postgres, ['--single', '-D', data, 'baton'], {
    ...ids,
    cwd: '/',
    input:
      'ALTER ROLE baton REPLICATION\n' +
      'GRANT EXECUTE ON FUNCTION pg_wal_replay_pause(), pg_wal_replay_resume() TO baton\n',
    stdio: ['pipe', 'ignore', 'ignore'],
  });
  appendFileSync(join(data, 'pg_hba.conf'), 'host replication baton 127.0.0.1/32 scram-sha-256\n');
  const caFile = join(root, 'server.crt');
  const otherCaFile = join(root, 'other.crt');
  writeFileSync(caFile, CERTIFICATE);
  writeFileSync(otherCaFile, OTHER_CERTIFICATE);
  const put = (file: string, text: string): void => {
    writeFileSync(file, text, { mode: 0o600 });
    if (account) chownSync(file, account.uid, account.gid);
  };
  put(join(data, 'server.crt'), CERTIFICATE);
  put(join(data, 'server.key'), KEY);
  execFileSync('cp', ['-a', first, second]);
  if (state !== first) throw new Error('Postgres may not enter the folder for temporary files.');

  const secured = { ...settings, ssl: 'on' };
  const primary = await startTestPostgres(first, {
    settings: { ...secured, synchronous_standby_names: isSynchronous ? '*' : '' },
    at: plain.url,
  });
  const { username, password, port } = new URL(plain.url);
  const standbyData = join(second, 'data');
  put(join(standbyData, 'standby.signal'), '');
  const following = {
    ...secured,
    primary_conninfo: `host=127.0.0.1 port=${port} user=${username} password=${password} sslmode=disable`,
    recovery_min_apply_delay: `${applyDelayMs}ms`,
  };
  let standby = await startTestPostgres(second, { settings: following });
  const standbyUrl = standby.url;
  const address = await TcpProxy.start(Number(port));
  const url = new URL(address.through(plain.url));
  url.searchParams.set('sslmode', 'verify-full');
  url.searchParams.set('sslrootcert', caFile);
  return {
    url: url.toString(),
    standbyUrl,
    otherCaFile,
    crashPrimary: async () => {
      primary.process.kill();
      await primary.process.exited;
    },
    leadToStandby: () => address.leadTo(Number(new URL(standby.url).port)),
    promoteStandby: () =>
      void execFileSync(join(dirname(postgres), 'pg_ctl'), ['promote', '-D', standbyData], {
        ...ids,
        cwd: '/',
        stdio: 'ignore',
      }),
    stopStandby: () => standby.process.stop(5000),
    restartStandby: async () => {
      standby = await startTestPostgres(second, { settings: following, at: standbyUrl });
    },
    drop: async () => {
      address.close();
      await Promise.all([standby.process.stop(5000), primary.process.stop(5000)]);
      rmSync(root, { recursive: true, force: true });
    },
  };
}
