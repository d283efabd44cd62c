import { once } from 'node:events';
import { createServer, type Server, type Socket, connect } from 'node:net';
import { type Stores, openStores, sql, startTask } from '../../stores.fixture.js';
import { LeaseBeat, type HeartbeatEvent } from './lease-beat.js';
import { LeaseTable, readLeases } from './lease-table.js';

const LEASE_MS = 600;

let stores: Stores;
let beat: LeaseBeat | undefined;
let silentForMs = 0;
let news: HeartbeatEvent[];
let sessions: (string | undefined)[];
let heard: () => void;

beforeEach(async () => {
  stores = await openStores();
  silentForMs = 0;
  news = [];
  sessions = [];
});
afterEach(async () => {
  await beat?.close();
  await stores.close();
});

function start(databaseUrl = stores.url, leaseMs = LEASE_MS): LeaseTable {
  const leases = new LeaseTable();
  const options = { databaseUrl, workerId: 'worker', leaseMs, heartbeatMs: 50, loopStallMs: 1000 };
  beat = new LeaseBeat(
    options,
    () => readLeases(leases.buffers),
    () => silentForMs,
    (piece) => {
      if (piece.type === 'session') sessions.push(piece.name);
      else news.push(piece);
      heard();
    },
  );
  return leases;
}

/** Resolves with the next event of this type. */
async function reported(type: HeartbeatEvent['type']): Promise<HeartbeatEvent> {
  for (;;) {
    const found = news.find((piece) => piece.type === type);
    if (found) return found;
    await new Promise<void>((resolve) => (heard = resolve));
  }
}

heard = () => undefined;

/** Resolves when the lease of the run ends later than it does now, or has run out. */
async function leaseChanges(runId: string, wanted: 'extended' | 'expired'): Promise<void> {
  const read = `SELECT lease_expires_at AS at, lease_expires_at < now() AS expired FROM runs WHERE id = '${runId}'`;
  type Row = { at: Date; expired: boolean };
  const [before] = (await sql(stores, read)) as Row[];
  for (;;) {
    const [now] = (await sql(stores, read)) as Row[];
    if (wanted === 'expired' ? now!.expired : now!.at > before!.at) return;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

it('keeps a lease until it is released', async () => {
  const run = await startTask(stores);
  // A heartbeat may take as long as a lease: then it has not failed on a busy machine either.
  const keeping = start(stores.url, 12_000);
  keeping.hold(run);
  await sql(stores, `UPDATE runs SET lease_expires_at = now() + interval '200 ms'`);
  await leaseChanges(run.runId, 'extended');
  await leaseChanges(run.runId, 'extended');
  keeping.release(run);
  await leaseChanges(run.runId, 'expired');
  expect(news).toEqual([]);
});

it('reports lost leases, again and again until they are released', async () => {
  const run = await startTask(stores);
  const keeping = start();
  keeping.hold({ ...run, attempt: 7 });
  expect(await reported('lost')).toEqual({ type: 'lost', leases: [{ runId: run.runId, attempt: 7 }] });
  news = [];
  await reported('lost');
  keeping.release({ ...run, attempt: 7 });
});

it('gives the leases up when the main thread has not answered for long, and goes on when it does', async () => {
  const run = await startTask(stores);
  const keeping = start();
  keeping.hold(run);
  await sql(stores, `UPDATE runs SET lease_expires_at = now() + interval '200 ms'`);
  await leaseChanges(run.runId, 'extended');
  silentForMs = 1001;
  expect(await reported('stalled')).toEqual({ type: 'stalled', forMs: 1001 });
  await leaseChanges(run.runId, 'expired');
  silentForMs = 0;
  await leaseChanges(run.runId, 'extended');
});

it('recovers from an outage by itself, of a server that closes connections as well as of a silent one', async () => {
  const run = await startTask(stores);
  const way = await Way.open(stores.url);
  const keeping = start(way.url);
  keeping.hold(run);
  await sql(stores, `UPDATE runs SET lease_expires_at = now() + interval '200 ms'`);
  await leaseChanges(run.runId, 'extended');
  for (const damage of ['cut', 'mute'] as const) {
    news = [];
    way[damage]();
    await reported('failed');
    way.mend();
    await reported('back');
    await leaseChanges(run.runId, 'extended');
  }
  way.close();
});

it('keeps a connection without a lease to extend, reports its session, and connects again when it is cut', async () => {
  const way = await Way.open(stores.url);
  start(way.url);
  const session = async (count: number): Promise<string | undefined> => {
    while (sessions.length < count) await new Promise<void>((resolve) => (heard = resolve));
    return sessions[count - 1];
  };
  const alive = await sql(
    stores,
    `SELECT FROM pg_stat_activity WHERE pid = ${(await session(1))?.split('/')[0]}`,
  );
  expect(alive).toHaveLength(1);
  way.cut();
  way.mend();
  expect(await session(2)).not.toBe(sessions[0]);
  way.close();
});

it('reports that Postgres is back also without a lease to extend', async () => {
  const run = await startTask(stores);
  const way = await Way.open(stores.url);
  const keeping = start(way.url);
  keeping.hold(run);
  way.cut();
  await reported('failed');
  keeping.release(run);
  way.mend();
  await reported('back');
  way.close();
});

/** A way to Postgres that can be cut, or swallow what goes through it. */
class Way {
  private readonly sockets = new Set<Socket>();
  private state: 'open' | 'cut' | 'mute' = 'open';

  private constructor(
    private readonly server: Server,
    readonly url: string,
  ) {}

  static async open(target: string): Promise<Way> {
    const { hostname, port } = new URL(target);
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    const url = new URL(target);
    url.port = String((server.address() as { port: number }).port);
    const way = new Way(server, url.toString());
    server.on('connection', (near) => {
      if (way.state === 'cut') return near.destroy();
      const far = connect(Number(port), hostname);
      for (const [from, to] of [
        [near, far],
        [far, near],
      ] as const) {
        way.sockets.add(from);
        from.on('data', (data) => way.state === 'open' && to.write(data));
        from.on('error', () => undefined).on('close', () => to.destroy());
      }
    });
    return way;
  }

  cut(): void {
    this.state = 'cut';
    for (const socket of this.sockets) socket.destroy();
  }

  mute(): void {
    this.state = 'mute';
  }

  mend(): void {
    this.state = 'open';
  }

  close(): void {
    this.cut();
    this.server.close();
  }
}
