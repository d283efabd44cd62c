import { inspectRedis } from '../../libs/messaging/src/index.js';
import { FailoverTraffic } from '../support/failover-traffic.js';
import { Hold } from '../support/hold.js';
import { DRIVERS } from '../support/index.js';
import { CRASH_SETTINGS } from '../support/crash-settings.js';
import { RawCaller } from '../support/raw-caller.js';
import { type SentinelRedis, startSentinelRedis } from '../support/sentinel.js';
import { Stack } from '../support/stack.js';

const SLOTS = 4;
const withRedis = DRIVERS.includes('redis') ? describe : describe.skip;

withRedis('Redis with a replica and three Sentinels', () => {
  let redis: SentinelRedis;
  let stack: Stack;
  let traffic: FailoverTraffic;
  const hold = new Hold();

  beforeAll(async () => {
    redis = await startSentinelRedis();
    const env = {
      REDIS_URL: redis.url,
      WORKER_CONCURRENCY: String(SLOTS),
      RESERVED_SLOTS_PERCENT: '0',
      ...hold.env,
      ORPHAN_MS: '1000',
      ...CRASH_SETTINGS,
    };
    stack = await Stack.start({ driver: 'postgres', env });
    const { token } = await stack.createTenant();
    const urlOf = () => stack.url(0, 'pacer');
    traffic = new FailoverTraffic(new RawCaller(stack.url(0), token), {
      streams: SLOTS,
      urlOf,
      hold,
      pauseMs: 100,
    });
  });
  afterAll(async () => {
    await stack.stop();
    await redis.stop();
    hold.remove();
  });

  it('loses and doubles nothing when the primary dies, though the replica misses what was on the queue', async () => {
    // All slots are taken: some of these are on the queue, and the replica does not have them.
    const prepare = async (): Promise<string[]> => {
      await redis.cutReplication();
      const sent: string[] = [];
      for (let i = 0; i < 6; i++) sent.push(await traffic.send());
      return sent;
    };
    await traffic.during(() => redis.crashPrimary(), prepare);
    await traffic.streamsOne();
    expect(await inspectRedis(redis.url)).toMatchObject({
      address: expect.stringMatching(/^main of Sentinel \(127\.0\.0\.1:/),
      writes: true,
    });
    await expect(inspectRedis(redis.url.replace('sentinel=main', 'sentinel=other'))).rejects.toThrow(
      'does not answer: no Sentinel knows a primary of this name: correct the parameter sentinel of the URL',
    );
  });
});
