import { join } from 'node:path';
import { setEnvironmentData } from 'node:worker_threads';
import type { BeatNews } from './lease-beat.js';
import { LeaseKeeper } from './lease-keeper.js';

const threadFile = join(__dirname, 'brittle-thread.fixture.cjs');
const options = { databaseUrl: '', workerId: 'w', leaseMs: 3000, heartbeatMs: 20, loopStallMs: 60_000 };
const key = { tenantId: 't', runId: 'r', attempt: 1 };

it('starts a thread that dies again, with the leases it had, and lets it end at the close', async () => {
  const news: BeatNews[] = [];
  let seen: () => void = () => undefined;
  const keeper = new LeaseKeeper({ ...options, threadFile }, (piece) => {
    news.push(piece);
    seen();
  });
  const count = async (wanted: number): Promise<void> => {
    while (news.length < wanted) await new Promise<void>((resolve) => (seen = resolve));
  };
  // It tells what it is given, and dies of an attempt 13.
  keeper.hold(key);
  await count(1);
  keeper.hold({ ...key, attempt: 13 });
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
  const told: ((news: BeatNews) => void)[] = [];
  const keeper = new LeaseKeeper({ ...options, threadFile }, (piece) => told.shift()?.(piece));
  const ask = async (attempt: number, meanwhile?: () => void): Promise<number> => {
    const answer = new Promise<BeatNews>((resolve) => told.push(resolve));
    keeper.hold({ ...key, attempt });
    meanwhile?.();
    return ((await answer) as Extract<BeatNews, { type: 'stalled' }>).forMs;
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
