import { join } from 'node:path';
import { setEnvironmentData } from 'node:worker_threads';
import type { HeartbeatEvent } from './lease-beat.js';
import type { LeaseKey } from './lease-key.js';
import { LeaseKeeper } from './lease-keeper.js';
import { LeaseTable, readLeases } from './lease-table.js';

const threadFile = join(__dirname, 'brittle-thread.fixture.cjs');
const options = { databaseUrl: '', workerId: 'w', leaseMs: 3000, heartbeatMs: 20, loopStallMs: 60_000 };
const key = { tenantId: 't', runId: 'r', attempt: 1 };

it('starts a thread that dies again, with the leases it had, and lets it end at the close', async () => {
  const news: HeartbeatEvent[] = [];
  let seen: () => void = () => undefined;
  const keeper = new LeaseKeeper({ ...options, threadFile }, (piece) => {
    news.push(piece);
    seen();
  });
  const count = async (wanted: number): Promise<void> => {
    while (news.length < wanted) await new Promise<void>((resolve) => (seen = resolve));
  };
  // The thread reports what it finds, and dies of an attempt 13.
  keeper.hold(key);
  await count(1);
  keeper.hold({ ...key, attempt: 13 });
  await count(2);
  keeper.release({ ...key, attempt: 13 });
  await count(4);
  const lost = { type: 'lost', leases: [{ runId: 'r', attempt: 1 }] };
  expect(news).toEqual([lost, { type: 'failed', reason: 'unlucky' }, { type: 'back' }, lost]);
  await keeper.close();
  keeper.release(key);
});

it('shows the thread that the event loop lives, and no longer when it does not', async () => {
  const noticed = new Int32Array(new SharedArrayBuffer(4));
  setEnvironmentData('noticed', noticed);
  const waiting: ((news: HeartbeatEvent) => void)[] = [];
  const keeper = new LeaseKeeper({ ...options, threadFile }, (piece) => waiting.shift()?.(piece));
  const ask = async (attempt: number, meanwhile?: () => void): Promise<number> => {
    const answer = new Promise<HeartbeatEvent>((resolve) => waiting.push(resolve));
    keeper.hold({ ...key, attempt });
    meanwhile?.();
    const { forMs } = (await answer) as Extract<HeartbeatEvent, { type: 'stalled' }>;
    keeper.release({ ...key, attempt });
    return forMs;
  };
  // As an agent that computes for long: nothing else runs on this thread until the other has noticed.
  const compute = (): void => void Atomics.wait(noticed, 0, 0, 120_000);
  const idleMs = await ask(200);
  const computingMs = await ask(201, compute);
  expect(computingMs).toBeGreaterThanOrEqual(1_000);
  expect(idleMs).toBeLessThan(computingMs);
  expect(await ask(200)).toBeLessThan(computingMs);
  await keeper.close();
});

it('shares the leases that are held, as many as there are, and gives free places to others', () => {
  const shared: SharedArrayBuffer[] = [];
  const table = new LeaseTable((buffer) => shared.push(buffer));
  const uuid = (i: number): string => `00000000-0000-4000-8000-${String(i).padStart(12, '0')}`;
  const keys = Array.from({ length: 500 }, (_, i) => ({ tenantId: uuid(i % 3), runId: uuid(i), attempt: i }));
  const sorted = (leases: LeaseKey[]): LeaseKey[] =>
    leases.toSorted((one, other) => one.runId.localeCompare(other.runId) || one.attempt - other.attempt);
  for (const each of keys) table.hold(each);
  expect(sorted(readLeases(shared))).toEqual(keys);
  for (const each of keys.slice(0, 400)) table.release(each);
  table.release({ runId: uuid(499), attempt: 1 });
  table.hold(keys[499]!);
  expect(sorted(readLeases(shared))).toEqual(keys.slice(400));
  const size = shared.length;
  const others = keys.slice(0, 400).map((each) => ({ ...each, attempt: each.attempt + 1 }));
  for (const each of others) table.hold(each);
  expect(sorted(readLeases(shared))).toEqual([...others, ...keys.slice(400)]);
  expect(shared).toHaveLength(size);
});
