import { once } from 'node:events';
import { chmodSync, chownSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { type AddressInfo, connect, createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { unprivilegedAccount } from '../../../apps/local/src/services/postgres-files.js';
import { CERTIFICATE, KEY } from '../../../test/support/certificates.js';
import { createDatabase, type TestDatabase } from '../../../test/support/database.js';
import { findPgBouncer, startPgBouncer } from '../../../test/support/pgbouncer.js';
import { startPrivatePostgres } from '../../../test/support/postgres.js';
import { until } from '../../../test/support/until.js';
import { PostgresClient, untilStatementEnded } from './postgres-client.js';
import { PostgresPool, type PostgresPoolConfig } from './postgres-pool.js';
import { connectionConfig, sessionConfig } from './session-settings.js';

let database: TestDatabase;
/** On a connection that nothing disturbs. */
let observer: PostgresClient;
const pools: PostgresPool[] = [];
const frozen = new Set<number>();

beforeAll(async () => {
  database = await createDatabase();
  observer = new PostgresClient({ ...sessionConfig(database.url), reachMs: 60_000, connectMs: 60_000 });
  await observer.connect();
});
afterEach(async () => {
  thaw();
  await Promise.all(pools.splice(0).map((pool) => pool.end()));
});
afterAll(async () => {
  await observer.end();
  await database.drop();
});

const open = (options: Partial<PostgresPoolConfig> = {}, url = database.url): PostgresPool => {
  const pool = new PostgresPool({
    ...sessionConfig(url),
    application_name: 'pool',
    max: 1,
    connectMs: 200,
    answerMs: 200,
    ...options,
  });
  pool.on('error', () => undefined);
  pools.push(pool);
  return pool;
};

/** The sessions of the pool, as the server sees them. */
async function sessions(): Promise<{ pid: number }[]> {
  const text = `SELECT pid FROM pg_stat_activity WHERE application_name = 'pool'`;
  const { rows } = await observer.query(text);
  return rows;
}

const failed = (work: Promise<unknown>): Promise<Error> =>
  work.then(
    () => {
      throw new Error('It has not failed');
    },
    (error: unknown) => error as Error,
  );

/** Tries until it works: on a busy machine nothing is done in the short times of these pools. */
async function eventually<T>(work: () => Promise<T>): Promise<T> {
  for (;;) {
    const outcome = await work().then(
      (result) => ({ result }),
      () => undefined,
    );
    if (outcome) return outcome.result;
    await delay(10);
  }
}

/** Stops the processes of these sessions, as a machine without CPU time does. */
function freeze(...pids: number[]): void {
  for (const pid of pids) {
    process.kill(pid, 'SIGSTOP');
    frozen.add(pid);
  }
}

function thaw(): void {
  for (const pid of frozen) process.kill(pid, 'SIGCONT');
  frozen.clear();
}

async function pidOf(pool: PostgresPool): Promise<number> {
  const ask = () => pool.query<{ pid: number }>('SELECT pg_backend_pid() AS pid');
  return (await eventually(ask)).rows[0]!.pid;
}

it.each([true, false])('cancels a statement that gets no answer in time (pipeline: %s)', async (pipeline) => {
  const given: string[] = [];
  const pool = open({ pipeline, connectMs: 60_000, onGivenUp: (what) => given.push(what) });
  const error = await failed(pool.query('SELECT pg_sleep(600)'));
  expect(error.message).toBe('Query read timeout');
  await untilStatementEnded(error);
  expect(await sessions()).toEqual([]);
  expect(given).toEqual(['statement']);
  await eventually(() => pool.query('SELECT 1'));
});

/** Whether a statement that got no answer in time is canceled over this URL. */
async function cancelsOver(url: string, options: Partial<PostgresPoolConfig> = {}): Promise<void> {
  const connection = options.isPooled ? connectionConfig(url) : sessionConfig(url);
  const pool = open({ ...connection, options: undefined, connectMs: 60_000, ...options });
  const error = await failed(pool.query('SELECT pg_sleep(600)'));
  expect(error.message).toBe('Query read timeout');
  await untilStatementEnded(error);
  expect(pool.closingCount).toBe(0);
  const sleeping = `SELECT pid FROM pg_stat_activity WHERE state = 'active' AND query = 'SELECT pg_sleep(600)'`;
  await until(async () => (await eventually(() => pool.query(sleeping))).rowCount === 0);
}

(findPgBouncer() ? it : it.skip)('cancels through a pooler', async () => {
  const pooler = await startPgBouncer(findPgBouncer()!, database.url, 2);
  try {
    await cancelsOver(pooler.url, { isPooled: true });
  } finally {
    await Promise.all(pools.splice(0).map((pool) => pool.end()));
    await pooler.remove();
  }
});

it('cancels over TLS', async () => {
  const folder = mkdtempSync(join(tmpdir(), `baton-test-${process.pid}-`));
  const account = unprivilegedAccount();
  chmodSync(folder, 0o711);
  for (const [name, text] of Object.entries({ certificate: CERTIFICATE, key: KEY })) {
    writeFileSync(join(folder, name), text, { mode: 0o600 });
    if (account) chownSync(join(folder, name), account.uid, account.gid);
  }
  const postgres = await startPrivatePostgres({
    settings: { ssl: 'on', ssl_cert_file: join(folder, 'certificate'), ssl_key_file: join(folder, 'key') },
  });
  try {
    await cancelsOver(`${postgres.url}?sslmode=no-verify`);
  } finally {
    await Promise.all(pools.splice(0).map((pool) => pool.end()));
    await postgres.drop();
    rmSync(folder, { recursive: true });
  }
});

it('gives each statement its own time', async () => {
  const pool = open({ pipeline: true, answerMs: 2_000 });
  const client = await eventually(() => pool.connect());
  const slow = Array.from({ length: 5 }, () => client.query('SELECT pg_sleep(0.5)'));
  await Promise.all(slow);
  client.release();
  expect(pool.totalCount).toBe(1);
});

it('makes no further session while Postgres has not ended one that was given up', async () => {
  const pool = open({ max: 2 });
  const clients = await Promise.all([1, 2].map(() => eventually(() => pool.connect())));
  clients.forEach((client) => client.release());
  freeze(...(await sessions()).map(({ pid }) => pid));

  const errors = await Promise.all([1, 2].map(() => failed(pool.query('SELECT 1'))));
  expect(errors.map(({ message }) => message)).toEqual(['Query read timeout', 'Query read timeout']);
  expect(pool.closingCount).toBe(2);
  for (let tries = 0; tries < 3; tries++) {
    expect((await failed(pool.query('SELECT 1'))).message).toBe('timeout exceeded when trying to connect');
  }
  expect(await sessions()).toHaveLength(2);

  thaw();
  await Promise.all(errors.map(untilStatementEnded));
  await eventually(() => pool.query('SELECT 1'));
  expect(pool.totalCount + pool.closingCount).toBe(1);
});

it('counts a connection that was closed because it was idle, until Postgres has ended its session', async () => {
  const pool = open({ idleTimeoutMillis: 1 });
  const removed = once(pool, 'remove');
  freeze(await pidOf(pool));
  // The package has no event for the beginning of the end.
  while (pool.totalCount > 0) await new Promise(setImmediate);
  expect((await failed(pool.query('SELECT 1'))).message).toBe('timeout exceeded when trying to connect');
  expect(await sessions()).toHaveLength(1);
  thaw();
  await removed;
  await eventually(() => pool.query('SELECT 1'));
});

it('uses a session that begins when its caller no longer waits, and is more patient each time', async () => {
  const server = await SlowServer.before(database.url);
  const given: string[] = [];
  const pool = open({ connectMs: 50, answerMs: 60_000, onGivenUp: (what) => given.push(what) }, server.url);
  try {
    // Each attempt ends twice as late as the one before.
    for (const attempts of [1, 2, 3]) {
      while (given.length < attempts) await failed(pool.query('SELECT 1'));
      expect(pool.closingCount).toBe(1);
      server.cut();
    }
    expect(given).toEqual(['connect', 'connect', 'connect']);
    while (server.waiting === 0) await failed(pool.query('SELECT 1'));
    await failed(pool.query('SELECT 1'));
    server.serve();
    await eventually(() => pool.query('SELECT 1'));
    expect(server.accepted).toBe(4);
  } finally {
    await Promise.all(pools.splice(0).map((each) => each.end()));
    server.close();
  }
});

/** A way to Postgres that accepts connections, and says nothing until it serves. */
class SlowServer {
  private readonly held = new Set<() => void>();
  private readonly cuts = new Set<() => void>();
  private isServing = false;
  accepted = 0;

  private constructor(
    private readonly server: Server,
    readonly url: string,
  ) {}

  static async before(databaseUrl: string): Promise<SlowServer> {
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    const target = new URL(databaseUrl);
    const url = new URL(databaseUrl);
    url.port = String((server.address() as AddressInfo).port);
    const slow = new SlowServer(server, url.toString());
    server.on('connection', (near) => {
      slow.accepted += 1;
      near.on('error', () => undefined);
      const go = (): void => {
        const far = connect(Number(target.port), target.hostname);
        near.pipe(far).pipe(near);
        far.on('error', () => near.destroy());
      };
      if (slow.isServing) return go();
      slow.held.add(go);
      slow.cuts.add(() => near.destroy());
    });
    return slow;
  }

  get waiting(): number {
    return this.held.size;
  }

  serve(): void {
    this.isServing = true;
    for (const go of this.held) go();
    this.held.clear();
  }

  /** As a server that finds these connections closed. */
  cut(): void {
    for (const cut of this.cuts) cut();
    this.cuts.clear();
    this.held.clear();
  }

  close(): void {
    this.cut();
    this.server.close();
  }
}
