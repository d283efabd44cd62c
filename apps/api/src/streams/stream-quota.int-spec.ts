import { type Principal, ProtocolError } from '@baton/a2a';
import { NO_LIMITS } from '@baton/config';
import { Database, StreamCountStore } from '@baton/database';
import type { ControlMessage } from '@baton/messaging';
import { Logger } from '@baton/telemetry';
import { randomUUID } from 'node:crypto';
import { createDatabase, type TestDatabase } from '../../../../test/support/index.js';
import { StreamQuota } from './stream-quota.js';

let test: TestDatabase;
let database: Database;
const limits: Record<string, number | null> = {};
const listeners = new Set<(message: ControlMessage) => void>();
const processes: StreamQuota[] = [];

beforeAll(async () => {
  test = await createDatabase();
  database = new Database({ url: test.url, poolSize: 8 });
});
afterEach(() => {
  for (const process of processes.splice(0)) process.onApplicationShutdown();
});
afterAll(async () => {
  await database.close();
  await test.drop();
});

/** The slots as one API process has them. */
async function process(store = new StreamCountStore(database)): Promise<StreamQuota> {
  const quota = new StreamQuota(
    store,
    {
      get: async (id: string) => ({ ...NO_LIMITS, guestShare: 50, openStreams: limits[id] ?? null }),
    } as never,
    {
      subscribeControl: async (listener: (message: ControlMessage) => void) => {
        listeners.add(listener);
        return () => listeners.delete(listener);
      },
    } as never,
    Logger.silent(),
  );
  await quota.onModuleInit();
  processes.push(quota);
  return quota;
}

function setLimit(tenantId: string, most: number | null): void {
  limits[tenantId] = most;
  for (const listener of listeners) listener({ type: 'limits-changed', tenantId });
}

function newTenant(most: number | null): string {
  const tenantId = randomUUID();
  limits[tenantId] = most;
  return tenantId;
}

/** A stream that is open until it is closed, or that was refused. */
interface Stream {
  refusal?: ProtocolError;
  close(): Promise<void>;
}

function open(quota: StreamQuota, tenantId: string, kind: Principal['kind'] = 'token'): Promise<Stream> {
  const caller = new AbortController();
  return new Promise((resolve, reject) => {
    const over = quota.during({ tenantId, principal: { kind, key: kind } }, caller.signal, async () => {
      const ended = new Promise<void>((end) => caller.signal.addEventListener('abort', () => end()));
      resolve({
        close: async () => {
          caller.abort();
          await over;
        },
      });
      await ended;
    });
    over.catch((error: unknown) => {
      if (error instanceof ProtocolError) resolve({ refusal: error, close: async () => undefined });
      else reject(error instanceof Error ? error : new Error(String(error)));
    });
  });
}

const granted = (streams: Stream[]): Stream[] => streams.filter(({ refusal }) => !refusal);

/** What stands in the database, when nothing is under way any more. */
async function noted(tenantId: string): Promise<number> {
  const rows = await database.systemQuery<{ n: string }>(
    { text: 'SELECT COALESCE(sum(streams), 0) AS n FROM stream_counts WHERE tenant_id = $1' },
    [tenantId],
  );
  return Number(rows[0]?.n);
}

async function until(tenantId: string, streams: number): Promise<void> {
  while ((await noted(tenantId)) !== streams) await new Promise((resolve) => setImmediate(resolve));
}

describe('slots for streams', () => {
  it('are free when the caller leaves, once, though the stream still sends its buffer', async () => {
    const quota = await process();
    const tenantId = newTenant(1);
    const caller = new AbortController();
    let finish: () => void = () => undefined;
    let lingering: Promise<void> | undefined;
    await new Promise<void>((begin) => {
      const principal = { kind: 'token', key: 'token' } as const;
      lingering = quota.during({ tenantId, principal }, caller.signal, () => {
        begin();
        return new Promise<void>((end) => (finish = end));
      });
    });
    expect((await open(quota, tenantId)).refusal).toBeDefined();
    caller.abort();
    const next = await open(quota, tenantId);
    expect(next.refusal).toBeUndefined();
    finish();
    await lingering;
    await until(tenantId, 1);
    expect((await open(quota, tenantId)).refusal).toBeDefined();
    await next.close();
    await until(tenantId, 0);
  });

  it('are as many as the limit over all processes under concurrent calls', async () => {
    const [one, other] = await Promise.all([process(), process()]);
    const [tenant, another] = [newTenant(5), newTenant(2)];
    const [streams, others] = await Promise.all([
      Promise.all(Array.from({ length: 40 }, (_, i) => open(i % 2 ? one : other, tenant))),
      Promise.all(Array.from({ length: 3 }, () => open(one, another))),
    ]);
    expect([granted(streams).length, granted(others).length]).toEqual([5, 2]);
    expect(await noted(tenant)).toBe(5);
    expect(streams.find(({ refusal }) => refusal)?.refusal).toMatchObject({
      kind: 'limit-exceeded',
      detail: { retryAfterSeconds: 1, metadata: { limit: 'openStreams', max: '5' } },
    });
  });

  it('are for guests a share of them under concurrent calls', async () => {
    const [one, other] = await Promise.all([process(), process()]);
    const tenant = newTenant(6);
    const kinds = Array.from({ length: 12 }, () => 'guest' as const);
    const guests = await Promise.all(kinds.map((kind, i) => open(i % 2 ? one : other, tenant, kind)));
    expect(granted(guests)).toHaveLength(3);
    expect(guests.find(({ refusal }) => refusal)?.refusal?.detail.metadata).toMatchObject({ max: '3' });
    // What is left is for tokens, also if guests ask at the same time.
    const asked = [...kinds, ...kinds.map(() => 'token' as const)];
    const both = await Promise.all(asked.map((kind) => open(one, tenant, kind)));
    expect(granted(both.slice(0, kinds.length))).toHaveLength(0);
    expect(granted(both.slice(kinds.length))).toHaveLength(3);
    await Promise.all([...guests, ...both].map((stream) => stream.close()));
    await until(tenant, 0);
  });

  it('are free again when a stream ends, on every process', async () => {
    const [one, other] = await Promise.all([process(), process()]);
    const tenant = newTenant(3);
    const first = await Promise.all([open(one, tenant), open(one, tenant), open(other, tenant)]);
    expect(granted(first)).toHaveLength(3);
    await Promise.all([first[0].close(), first[2].close()]);
    await until(tenant, 1);
    const second = await Promise.all([open(other, tenant), open(other, tenant), open(other, tenant)]);
    expect(granted(second)).toHaveLength(2);
    await Promise.all([...first, ...second].map((stream) => stream.close()));
    await until(tenant, 0);
  });

  it('are kept exactly while streams come and go', async () => {
    const [one, other] = await Promise.all([process(), process()]);
    const tenant = newTenant(4);
    let now = 0;
    let most = 0;
    const callers = Array.from({ length: 16 }, async (_, i) => {
      for (let times = 0; times < 25; times++) {
        const stream = await open(i % 2 ? one : other, tenant);
        if (stream.refusal) continue;
        most = Math.max(most, ++now);
        // Open while others ask.
        await noted(tenant);
        now -= 1;
        await stream.close();
      }
    });
    await Promise.all(callers);
    expect(most).toBe(4);
    await until(tenant, 0);
  });

  it('cost nothing where there is no limit, and count as soon as there is one', async () => {
    const [one, other] = await Promise.all([process(), process()]);
    const tenant = newTenant(null);
    const free = await Promise.all([open(one, tenant), open(one, tenant), open(other, tenant)]);
    expect(await noted(tenant)).toBe(0);
    setLimit(tenant, 4);
    await until(tenant, 3);
    const more = await Promise.all([open(one, tenant), open(other, tenant)]);
    expect(granted(more)).toHaveLength(1);
    setLimit(tenant, 2);
    expect((await open(one, tenant)).refusal?.detail.metadata).toMatchObject({ max: '2' });
    await Promise.all([free[0], free[1], ...granted(more)].map((stream) => stream.close()));
    await until(tenant, 1);
    expect((await open(other, tenant)).refusal).toBeUndefined();
  });

  it('of a process that was killed are free again when it has been silent for 15 seconds', async () => {
    const tenant = newTenant(2);
    const [dead, alive] = await Promise.all([process(), process()]);
    await Promise.all([open(dead, tenant), open(dead, tenant)]);
    const age = (seconds: number) =>
      database.systemQuery(
        { text: `UPDATE stream_counts SET seen_at = now() - $2 * interval '1 second' WHERE tenant_id = $1` },
        [tenant, seconds],
      );
    const silentFor = async (): Promise<number> => {
      const text =
        'SELECT extract(epoch FROM now() - min(seen_at))::float8 AS s FROM stream_counts WHERE tenant_id = $1';
      return (await database.systemQuery<{ s: number }>({ text }, [tenant]))[0]!.s;
    };
    // It cannot be heard from any more.
    dead.onApplicationShutdown();
    // On a slow machine a second may pass before the slot is asked for; then it says nothing.
    for (let young = false; !young;) {
      await age(14);
      const { refusal, close } = await open(alive, tenant);
      young = (await silentFor()) < 15;
      if (young) expect(refusal).toBeDefined();
      await close();
    }
    await age(16);
    expect((await open(alive, tenant)).refusal).toBeUndefined();
  });

  it('are counted again when the counts are lost', async () => {
    jest.useFakeTimers({ doNotFake: ['setImmediate', 'nextTick', 'queueMicrotask', 'performance'] });
    try {
      const tenant = newTenant(2);
      const [one, other] = await Promise.all([process(), process()]);
      await Promise.all([open(one, tenant), open(one, tenant)]);
      await database.systemQuery({ text: 'DELETE FROM stream_counts WHERE tenant_id = $1' }, [tenant]);
      jest.advanceTimersByTime(4_000);
      await until(tenant, 2);
      expect((await open(other, tenant)).refusal).toBeDefined();
    } finally {
      jest.useRealTimers();
    }
  });

  it('are refused by an error, and take no place, when the database is away', async () => {
    const tenant = newTenant(2);
    const store = new StreamCountStore(database);
    const one = await process(store);
    const claim = jest.spyOn(store, 'claim').mockRejectedValueOnce(new Error('connection lost'));
    await expect(open(one, tenant)).rejects.toThrow('connection lost');
    claim.mockRestore();
    expect(granted(await Promise.all([1, 2, 3].map(() => open(one, tenant))))).toHaveLength(2);
  });
});
