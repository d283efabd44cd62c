import { Redis } from 'ioredis';
import { randomUUID } from 'node:crypto';
import { DRIVERS, type PrivateRedis, startPrivateRedis } from '../../../../../test/support/index.js';
import { Inbox, inTime } from '../../inbox.fixture.js';
import { Installation, signalOf, someRun } from '../../installation.fixture.js';
import type {
  ControlMessage,
  Messaging,
  RunJob,
  Spending,
  Subscription,
  TaskSignal,
} from '../../messaging.js';

// A machine without Redis tests Postgres alone.
const withRedis = DRIVERS.includes('redis') ? describe : describe.skip;

withRedis('messaging when Redis fails', () => {
  const [tenantId, taskId] = [randomUUID(), randomUUID()];
  let redis: PrivateRedis;
  let installation: Installation;
  let api: Messaging;
  let worker: Messaging;
  let runs: Inbox<RunJob>;

  beforeAll(async () => {
    redis = await startPrivateRedis();
  });
  afterAll(() => redis.remove());

  beforeEach(async () => {
    installation = await Installation.on('redis', redis.url);
    [api, worker] = await Promise.all([installation.process(), installation.process()]);
    runs = new Inbox();
  });
  afterEach(() => installation.close());

  const flush = async (): Promise<void> => {
    const client = new Redis(redis.url);
    await client.flushall();
    client.disconnect();
  };

  /** Enqueue as the API does until it works: a caller would get an error, the sweeper would retry. */
  const enqueueWhenBack = async (run: RunJob): Promise<void> => {
    const accepted = await api.enqueueRuns([run]).then(
      () => true,
      () => new Promise<boolean>((resolve) => setTimeout(resolve, 20, false)),
    );
    if (!accepted) await enqueueWhenBack(run);
  };

  /** Both connections: the one that listens, and then the one that sends, which may come back later. */
  const connectionBack = async (messaging: Messaging): Promise<void> => {
    await new Promise<void>((resolve) => void messaging.onSignalsMissed(resolve));
    await answering(messaging);
  };

  const answering = async (messaging: Messaging): Promise<void> => {
    const answered = await messaging.ping().then(
      () => true,
      () => new Promise<boolean>((resolve) => setTimeout(resolve, 20, false)),
    );
    if (!answered) await answering(messaging);
  };

  it('gives out new runs after FLUSHALL, to a worker that was waiting for one', async () => {
    worker.consumeRuns(10, async (job) => runs.push(job));
    await api.enqueueRuns([someRun()]);
    await runs.reach(1);
    await flush();
    const run = someRun();
    await api.enqueueRuns([run]);
    expect((await runs.reach(2))[1]).toEqual(run);
  });

  it('outlives FLUSHALL while runs are in hand', async () => {
    const finish: (() => void)[] = [];
    worker.consumeRuns(2, async (job) => {
      runs.push(job);
      if (runs.items.length <= 2) await new Promise<void>((resolve) => finish.push(resolve));
    });
    await api.enqueueRuns([someRun(), someRun()]);
    await runs.reach(2);
    await flush();
    const [next, last] = [someRun(), someRun()];
    await api.enqueueRuns([next, last]);
    for (const done of finish) done();
    const received = (await runs.reach(4)).slice(2).map(({ runId }) => runId);
    expect(received.sort()).toEqual([next.runId, last.runId].sort());
  });

  it('comes back after a crash: runs, signals and control messages flow, relays are notified', async () => {
    const signals = new Inbox<TaskSignal>();
    const control = new Inbox<ControlMessage>();
    worker.consumeRuns(10, async (job) => runs.push(job));
    await api.subscribeTask(tenantId, taskId, signals.push).inForce;
    await api.subscribeControl(control.push);
    const back = Promise.all([connectionBack(api), connectionBack(worker)]);
    await redis.crash();
    await redis.restart();
    await back;

    await worker.publishTask(tenantId, taskId, signalOf(1));
    await worker.publishControl({ type: 'catalog-changed', tenantId: null });
    await enqueueWhenBack(someRun());
    await Promise.all([signals.reach(1), control.reach(1), runs.reach(1)]);
  });

  it('notifies all relays that signals were lost while one process alone had no connection', async () => {
    const missed = new Promise<void>((resolve) => void api.onSignalsMissed(resolve));
    const client = new Redis(redis.url);
    // Those of the subscribers stay: no relay notices anything by itself.
    await client.client('KILL', 'TYPE', 'NORMAL');
    await worker.publishTask(tenantId, taskId, signalOf(1));
    client.disconnect();
    await missed;
  });

  describe('while Redis is away', () => {
    let away = false;

    beforeEach(async () => {
      await redis.crash();
      away = true;
    });
    afterEach(() => comeBack());

    const comeBack = async (): Promise<void> => {
      if (away) await redis.restart();
      away = false;
    };

    it('refuses runs within two seconds, saying why without the password', async () => {
      const { password } = new URL(redis.url);
      for (const attempt of [() => api.enqueueRuns([someRun()]), () => api.ping(), () => api.queueDepth()]) {
        const reason = await inTime<unknown>(2_000, attempt()).catch(String);
        expect(reason).toMatch(/^MessagingUnavailableError: Redis at 127\.0\.0\.1:\d+ does not answer: /);
        expect(reason).not.toContain(password);
      }
    });

    it('drops signals instead of failing or keeping them', async () => {
      await api.publishTask(tenantId, taskId, signalOf(1));
      await api.publishControl({ type: 'catalog-changed', tenantId: null });
      const signals = new Inbox<number>();
      const back = connectionBack(api);
      const { inForce } = api.subscribeTask(tenantId, taskId, (signal) => signals.push(signal.lastSequence));
      await comeBack();
      await Promise.all([back, inForce]);
      await api.publishTask(tenantId, taskId, signalOf(2));
      expect(await signals.reach(1)).toEqual([2]);
    });

    it('keeps nothing of a subscription that ends before it is in force', async () => {
      const [ended, left] = [randomUUID(), randomUUID()];
      api.subscribeTask(tenantId, ended, () => undefined).end();
      const [one, other] = [0, 1].map(() => api.subscribeTask(tenantId, left, jest.fn())) as [
        Subscription,
        Subscription,
      ];
      one.end();
      await comeBack();
      await other.inForce;
      const client = new Redis(redis.url);
      const channels = (await client.pubsub('CHANNELS', `*:${tenantId}:task:*`)) as string[];
      client.disconnect();
      expect(channels).toEqual([expect.stringMatching(left)]);
    });

    it('lets each process count for itself what keys may spend, and counts together afterwards', async () => {
      const spend = (messaging: Messaging) =>
        Promise.all(Array.from({ length: 5 }, () => messaging.spend('a', 3, 60)));
      const allowed = (all: Spending[]) => all.filter((spending) => spending.allowed).length;
      // Then both have noticed. What is sent before is sent again when Redis is back, and counts there.
      await Promise.allSettled([api.ping(), worker.ping()]);
      const alone = await inTime(1_000, Promise.all([spend(api), spend(worker)]));
      expect(alone.map(allowed)).toEqual([3, 3]);
      const back = Promise.all([connectionBack(api), connectionBack(worker)]);
      await comeBack();
      await back;
      const together = await Promise.all([spend(api), spend(worker)]);
      expect(allowed(together.flat())).toBe(3);
    });

    it('closes all the same', async () => {
      const consumer = worker.consumeRuns(10, async (job) => runs.push(job));
      await consumer.close();
      await Promise.all([api.close(), worker.close()]);
    });

    it('lets a worker start that finds it later', async () => {
      worker.consumeRuns(10, async (job) => runs.push(job));
      await comeBack();
      const run = someRun();
      await enqueueWhenBack(run);
      expect(await runs.reach(1)).toEqual([run]);
    });
  });

  it('does not wait for a Redis that is there but silent', async () => {
    worker.consumeRuns(10, async (job) => runs.push(job));
    const { pid } = redis.process;
    process.kill(pid, 'SIGSTOP');
    try {
      await expect(inTime(2_250, api.enqueueRuns([someRun()]))).rejects.toThrow('no answer in time');
      await expect(inTime(2_250, api.ping())).rejects.toThrow(/does not answer/);
      // Each process counts for itself what keys may spend.
      const spent = Promise.all([api, api, worker, worker].map((each) => each.spend('silent', 1, 600)));
      expect((await inTime(1_000, spent)).map(({ allowed }) => allowed)).toEqual([true, false, true, false]);
    } finally {
      process.kill(pid, 'SIGCONT');
    }
    const run = someRun();
    await enqueueWhenBack(run);
    await runs.until((items) => items.some(({ runId }) => runId === run.runId));
  });
});
