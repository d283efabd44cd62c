import { setTimeout as delay } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { Client } from 'pg';
import type { BatonProcess } from '../support/baton-process.js';
import { Hold, times } from '../support/hold.js';
import { driversOf } from '../support/nightly.js';
import { CRASH_SETTINGS } from '../support/crash-settings.js';
import { type Frame, RawCaller, sendParams } from '../support/raw-caller.js';
import { Stack } from '../support/stack.js';
import { completes, followToCompletion, increasing, textsOf } from '../support/streams.js';

const RUNS = 20;
const CHUNKS = 20;
const hold = new Hold();
/** Runs do not end before a worker that shuts down. */
const ENV = { ...hold.env, ...CRASH_SETTINGS, WORKER_GRACE_MS: '1' };
afterAll(() => hold.remove());

describe.each(driversOf('redis'))('faults on %s', (driver) => {
  let stack: Stack;
  let caller: RawCaller;

  beforeAll(async () => {
    stack = await Stack.start({ driver, apis: 2, workers: 2, env: ENV });
    const { token } = await stack.createTenant();
    caller = new RawCaller(stack.url(0), token);
  });
  const pacerAt = (api: number): string => stack.url(api, 'pacer');
  afterAll(() => stack.stop());

  /** Follows many runs at once and does the damage when all of them are in the middle. They continue when it is done. */
  async function followAll(again: () => string, damage: () => Promise<void>): Promise<Frame[][]> {
    hold.hold();
    let begun = 0;
    let done: Promise<void> | undefined;
    const seen = (frame: Frame): void => {
      if (frame.id === 3) begun += 1;
      if (begun === RUNS) done ??= damage().finally(() => hold.release());
    };
    const pacer = caller.at(pacerAt(0));
    const follow = (_: unknown, i: number): Promise<Frame[]> =>
      followToCompletion(pacer, sendParams(times(CHUNKS, `run ${i}`)), { again, onFrame: seen });
    const all = await Promise.all(Array.from({ length: RUNS }, follow));
    await done;
    return all;
  }

  function expectWhole(all: Frame[][]): void {
    for (const [i, frames] of all.entries()) {
      expect(frames[0]?.id).toBe(1);
      expect(increasing(frames)).toBe(true);
      expect(textsOf(frames)).toEqual(Array(CHUNKS).fill(`run ${i}`));
    }
  }

  /** The worker that executes the most runs at this moment. */
  async function busiestWorker(): Promise<BatonProcess> {
    const client = new Client({ connectionString: stack.database.url });
    await client.connect();
    try {
      await client.query(`SET baton.tenant = 'system'`);
      const { rows } = await client.query<{ pid: number }>(
        `SELECT w.pid FROM runs r JOIN workers w ON w.id = r.worker_id WHERE r.state = 'running'
         GROUP BY w.pid ORDER BY count(*) DESC LIMIT 1`,
      );
      return stack.workers.find(({ pid }) => pid === rows[0]?.pid)!;
    } finally {
      await client.end();
    }
  }

  it('brings back every run of a worker that was killed', async () => {
    const all = await followAll(
      () => pacerAt(0),
      async () => stack.killWorkers([await busiestWorker()]),
    );
    await stack.addWorker();
    expectWhole(all);
    // A second attempt starts the artifact anew: the log has more chunks than the reply.
    const retried = all.filter((frames) => frames.length > CHUNKS + 3);
    expect(retried.length).toBeGreaterThan(0);
  });

  it('lets callers of a killed API continue at the other one', async () => {
    const all = await followAll(
      () => pacerAt(1),
      () => stack.apis[0]!.kill(),
    );
    expectWhole(all);
    stack.apis[0] = await stack.addApi();
    caller = caller.at(stack.url(0));
  });

  it('lets runs of a stopped worker go on elsewhere', async () => {
    let code: number | null | undefined;
    const all = await followAll(
      () => pacerAt(0),
      async () => {
        const worker = await busiestWorker();
        code = await worker.stop();
        expect(worker.log()).toMatch(/"msg":"returning runs to the queue"/);
      },
    );
    await stack.addWorker();
    expect(code).toBe(0);
    expectWhole(all);
    const spokeAgain = all.filter((frames) => frames.length > CHUNKS + 3);
    expect(spokeAgain.length).toBeGreaterThan(0);
  });

  if (driver === 'redis') {
    it('loses nothing when Redis is flushed and restarted', async () => {
      const all = await followAll(
        () => pacerAt(0),
        async () => {
          await stack.redis!.flush();
          await stack.redis!.crash();
          await stack.redis!.restart();
        },
      );
      expectWhole(all);
    });

    it('accepts a task while Redis is away and runs it afterwards', async () => {
      await stack.redis!.crash();
      const configuration = { returnImmediately: true };
      const sent = await caller.call('SendMessage', { ...sendParams('kept'), configuration });
      const id = sent.result!.task.id as string;
      await stack.redis!.restart();
      const frames: Frame[] = [];
      for await (const frame of caller.stream('SubscribeToTask', { id }, 0)) frames.push(frame);
      expect(completes(frames.at(-1))).toBe(true);
      expect(textsOf(frames)).toEqual(['kept']);
    });

    it('accepts tasks while Redis is full, lets streams go on, and runs tasks of the queue when it has room', async () => {
      const administrator = new Redis(stack.redis!.url);
      const ids: string[] = [];
      // So large that its run is not claimed for a worker with its acceptance.
      const kept = (n: number): string => `kept ${n} `.padEnd(40_000, '.');
      const all = await followAll(
        () => pacerAt(0),
        async () => {
          await administrator.config('SET', 'maxmemory', '1');
          for (const n of [1, 2, 3]) {
            const params = { ...sendParams(kept(n)), configuration: { returnImmediately: true } };
            ids.push((await caller.call('SendMessage', params)).result!.task.id as string);
          }
          const readiness = async () =>
            (await (await fetch(`${stack.apis[0]!.managementUrl}/readyz`)).json()) as Record<string, unknown>;
          let report = await readiness();
          // An answer is kept for a second.
          while (!JSON.stringify(report).includes('OOM')) {
            await delay(50);
            report = await readiness();
          }
          expect(report).toMatchObject({
            ready: true,
            warnings: [expect.stringMatching(/^messaging \(redis\) refuses commands \(OOM .+wait$/)],
          });
        },
      );
      // The streams end without any room.
      expectWhole(all);
      const states = await Promise.all(ids.map(async (id) => (await caller.call('GetTask', { id })).result));
      expect(states.map((task) => task?.status.state)).toEqual(ids.map(() => 'TASK_STATE_SUBMITTED'));
      await administrator.config('SET', 'maxmemory', '0');
      administrator.disconnect();
      for (const [n, id] of ids.entries()) {
        const frames: Frame[] = [];
        for await (const frame of caller.stream('SubscribeToTask', { id }, 0)) frames.push(frame);
        expect([completes(frames.at(-1)), textsOf(frames)]).toEqual([true, [kept(n + 1)]]);
      }
    });
  }
});
