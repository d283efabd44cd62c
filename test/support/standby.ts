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
import type { TestDatabase } from './database.js';
import { CHEAP_LOGINS, programs, startTestPostgres } from './postgres.js';

/** For 127.0.0.1, signed by itself, valid for a hundred years. */
const CERTIFICATE = `-----BEGIN CERTIFICATE-----
MIIBijCCATCgAwIBAgIUdk9ZRAYM+6QUwU5OiMdIXxaxuywwCgYIKoZIzj0EAwIw
ETEPMA0GA1UEAwwGc2VydmVyMCAXDTI2MTEyMzA1NDQwMFoYDzIxMjYxMDMwMDU0
NDAwWjARMQ8wDQYDVQQDDAZzZXJ2ZXIwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNC
AAQvXVUFxKQvSkZb6pyAkW2iMUdOiz2uvZynetiYWCbNnSlOOKKDziN2gks2+BJN
p5Y1RK5AHUVLW0syL7wK3QKFo2QwYjAdBgNVHQ4EFgQUUMd3xcWTNGpkdHUvlUHn
Y6kdxncwHwYDVR0jBBgwFoAUUMd3xcWTNGpkdHUvlUHnY6kdxncwDwYDVR0TAQH/
BAUwAwEB/zAPBgNVHREECDAGhwR/AAABMAoGCCqGSM49BAMCA0gAMEUCIFFIfJXt
d1DzIN8svxT6QDJL0a8ZjBQ2H3nu3z83maF5AiEArIIXbSVuE2OwN1711HjYp9Ae
h3k+rBXgmcCpJ8y3cHs=
-----END CERTIFICATE-----`;
const KEY = `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgimOkiW1/njJKCDY2
/6kefl+b5oF2QPjmO/cetd2EjXihRANCAAQvXVUFxKQvSkZb6pyAkW2iMUdOiz2u
vZynetiYWCbNnSlOOKKDziN2gks2+BJNp5Y1RK5AHUVLW0syL7wK3QKF
-----END PRIVATE KEY-----`;
const OTHER_CERTIFICATE = `-----BEGIN CERTIFICATE-----
MIIBiTCCAS6gAwIBAgIUcKWCApykcnpiImf8j0zFagImTbMwCgYIKoZIzj0EAwIw
EDEOMAwGA1UEAwwFb3RoZXIwIBcNMjYxMTIzMDU0NDAwWhgPMjEyNjEwMzAwNTQ0
MDBaMBAxDjAMBgNVBAMMBW90aGVyMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE
67XLm7d6lbzAP9QR6XDNGYpCPGp8EhPj3hacbH2/mu7R3C2gk9zHHRFhShenhzF7
tHYJGmWygjMXqys3dK6htKNkMGIwHQYDVR0OBBYEFLl15/ewm2d0kmdGabx/jo4Y
I1MsMB8GA1UdIwQYMBaAFLl15/ewm2d0kmdGabx/jo4YI1MsMA8GA1UdEwEB/wQF
MAMBAf8wDwYDVR0RBAgwBocEfwAAATAKBggqhkjOPQQDAgNJADBGAiEAk2hZMIEb
QxopSWOYGkBscNzcfTMNjrJKDPEoE6ZtYvECIQCvYMM+chXR3jTi+IWAfSLEqYPM
/Qm2DA2fi9Z3K8ueSw==
-----END CERTIFICATE-----`;

/** A Postgres whose commits wait for a streaming standby, both behind one address, as an operator has them. */
export interface ReplicatedPostgres extends TestDatabase {
  /** A CA that has not signed the certificate of these servers. */
  otherCaFile: string;
  /** Ends the primary as a power cut does. */
  crashPrimary(): Promise<void>;
  /** Has the address lead to the standby, which is read-only until it is promoted. */
  leadToStandby(): void;
  promoteStandby(): void;
}

export async function startReplicatedPostgres(): Promise<ReplicatedPostgres> {
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
  execFileSync(postgres, ['--single', '-D', data, 'postgres'], {
    ...ids,
    cwd: '/',
    input: 'ALTER ROLE baton REPLICATION\n',
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
    settings: { ...secured, synchronous_standby_names: '*' },
    at: plain.url,
  });
  const { username, password, port } = new URL(plain.url);
  const standbyData = join(second, 'data');
  put(join(standbyData, 'standby.signal'), '');
  const standby = await startTestPostgres(second, {
    settings: {
      ...secured,
      primary_conninfo: `host=127.0.0.1 port=${port} user=${username} password=${password} sslmode=disable`,
    },
  });
  const address = await TcpProxy.start(Number(port));
  const url = new URL(address.through(plain.url));
  url.searchParams.set('sslmode', 'verify-full');
  url.searchParams.set('sslrootcert', caFile);
  return {
    url: url.toString(),
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
    drop: async () => {
      address.close();
      await Promise.all([standby.process.stop(5000), primary.process.stop(5000)]);
      rmSync(root, { recursive: true, force: true });
    },
  };
}
