import { randomUUID } from 'node:crypto';
import { DRIVERS } from '../../../../../test/support/index.js';
import { type RedisCluster, startRedisCluster } from '../../../../../test/support/redis-cluster.js';
import { Inbox } from '../../inbox.fixture.js';
import { Installation, signalOf, someRun } from '../../installation.fixture.js';
import type { Messaging, RunJob, TaskSignal } from '../../messaging.js';
import { inspectRedis } from './inspect-redis.js';

// A machine without Redis tests Postgres alone.
const withRedis = DRIVERS.includes('redis') ? describe : describe.skip;

withRedis('messaging on a Redis Cluster', () => {
  let redis: RedisCluster;
  let installation: Installation;
  beforeAll(async () => {
    redis = await startRedisCluster();
    installation = await Installation.on('redis', redis.url);
  });
  afterAll(async () => {
    await installation.close();
    await redis.stop();
  });

  const start = async (): Promise<Messaging> => {
    // The rights of the Cluster's user are those of this name.
    const messaging = installation.create({ namespace: 'baton' });
    await messaging.start(120_000);
    return messaging;
  };

  it('hands out runs, carries signals and counts, also after its slot has moved to another primary', async () => {
    const [api, worker] = await Promise.all([start(), start()]);
    const [tenantId, taskId] = [randomUUID(), randomUUID()];
    const [runs, signals] = [new Inbox<RunJob>(), new Inbox<TaskSignal>()];
    worker.consumeRuns(10, async (job) => runs.push(job));
    await api.subscribeTask(tenantId, taskId, signals.push).inForce;
    for (const round of [1, 2]) {
      await redis.hasAll(2);
      await api.enqueueRuns([someRun(), someRun()]);
      await worker.publishTask(tenantId, taskId, signalOf(round));
      await Promise.all([runs.reach(2 * round), signals.reach(round)]);
      if (round === 1) await redis.moveSlot();
    }
    expect((await api.spend('key', 1, 60)).allowed).toBe(true);
    expect((await worker.spend('key', 1, 60)).allowed).toBe(false);
    expect(await inspectRedis(redis.url)).toMatchObject({
      address: expect.stringMatching(/^the Cluster of 127\.0\.0\.1:/),
      writes: true,
    });
  });
});
