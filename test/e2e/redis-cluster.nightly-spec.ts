import { inspectRedis } from '../../libs/messaging/src/index.js';
import { FailoverTraffic } from '../support/failover-traffic.js';
import { Hold } from '../support/hold.js';
import { DRIVERS } from '../support/index.js';
import { CRASH_SETTINGS } from '../support/crash-settings.js';
import { RawCaller, sendParams } from '../support/raw-caller.js';
import { type RedisCluster, startRedisCluster } from '../support/redis-cluster.js';
import { Stack } from '../support/stack.js';

/** Two APIs and a worker. */
const PROCESSES = 3;
const withRedis = DRIVERS.includes('redis') ? describe : describe.skip;

withRedis('a Redis Cluster of three primaries', () => {
  let redis: RedisCluster;
  let stack: Stack;
  let caller: RawCaller;
  let traffic: FailoverTraffic;
  const hold = new Hold();

  beforeAll(async () => {
    redis = await startRedisCluster();
    const env = { ...hold.env, REDIS_URL: redis.url, ORPHAN_MS: '1000', ...CRASH_SETTINGS };
    stack = await Stack.start({ driver: 'postgres', env, apis: 2 });
    const { token } = await stack.createTenant();
    caller = new RawCaller(stack.url(0), token);
    const urlOf = (stream: number) => stack.url(stream % 2, 'pacer');
    traffic = new FailoverTraffic(caller, { streams: 4, urlOf, hold, pauseMs: 20 });
  });
  afterAll(async () => {
    await stack.stop();
    await redis.stop();
    hold.remove();
  });

  /** Queue and signals lead to where the slot is now; no sweep has to find anything. */
  async function takesTheShortWay(): Promise<void> {
    await redis.hasAll(PROCESSES);
    await traffic.streamsOne();
    const metadata = { echo: { delayMs: 600_000 } };
    const { result } = await caller.call('SendMessage', {
      ...sendParams('long', { metadata }),
      configuration: { returnImmediately: true },
    });
    const id = result!.task.id as string;
    await traffic.becomes(id, 'TASK_STATE_WORKING');
    await caller.at(stack.url(1)).call('CancelTask', { id });
    await traffic.becomes(id, 'TASK_STATE_CANCELED');
  }

  it('loses and doubles nothing while the slot of Baton moves to another primary', async () => {
    await takesTheShortWay();
    await traffic.during(() => redis.moveSlot());
    await takesTheShortWay();
  });

  it('loses and doubles nothing when the primary of the slot dies', async () => {
    await traffic.during(() => redis.failOver());
    await takesTheShortWay();
    expect(await inspectRedis(redis.url)).toMatchObject({
      address: expect.stringMatching(/^the Cluster of 127\.0\.0\.1:/),
      writes: true,
    });
  });
});
