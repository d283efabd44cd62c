import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { inspectRedis } from '../../libs/messaging/src/index.js';
import { Hold, times } from '../support/hold.js';
import { DRIVERS } from '../support/index.js';
import { CRASH_SETTINGS } from '../support/crash-settings.js';
import { type Frame, RawCaller, sendParams } from '../support/raw-caller.js';
import { type RedisCluster, startRedisCluster } from '../support/redis-cluster.js';
import { Stack } from '../support/stack.js';
import { completes, followToCompletion, increasing, textsOf } from '../support/streams.js';

const STREAMS = 4;
const CHUNKS = 20;
/** Two APIs and a worker. */
const PROCESSES = 3;
const withRedis = DRIVERS.includes('redis') ? describe : describe.skip;

withRedis('a Redis Cluster of three primaries', () => {
  let redis: RedisCluster;
  let stack: Stack;
  let caller: RawCaller;
  const hold = new Hold();

  beforeAll(async () => {
    redis = await startRedisCluster();
    const env = { ...hold.env, REDIS_URL: redis.url, ORPHAN_MS: '1000', ...CRASH_SETTINGS };
    stack = await Stack.start({ driver: 'postgres', env, apis: 2 });
    const { token } = await stack.createTenant();
    caller = new RawCaller(stack.url(0), token);
  });
  afterAll(async () => {
    await stack.stop();
    await redis.stop();
    hold.remove();
  });

  const stateOf = async (id: string): Promise<string> =>
    (await caller.call('GetTask', { id })).result?.status.state as string;

  const send = async (): Promise<string> => {
    const { message } = sendParams(randomUUID());
    const answer = await caller.call('SendMessage', { message, configuration: { returnImmediately: true } });
    // Never refused: a task waits in Postgres.
    return answer.result!.task.id as string;
  };

  const becomes = async (id: string, wanted: string): Promise<void> => {
    let state = await stateOf(id);
    while (/SUBMITTED|WORKING/.test(state) && state !== wanted) {
      await delay(50);
      state = await stateOf(id);
    }
    expect([id, state]).toEqual([id, wanted]);
  };

  /** Strikes while streams are read at both APIs and tasks are sent, then looks for what is lost, doubled or out of order. */
  async function underTraffic(strike: () => Promise<void>): Promise<void> {
    let begun = 0;
    let all = (): void => undefined;
    const everybodySpeaks = new Promise<void>((resolve) => (all = resolve));
    hold.hold();
    const reading = Promise.all(
      Array.from({ length: STREAMS }, async (_, n) => {
        let seen = 0;
        const onFrame = (): void => {
          if (++seen === 3 && ++begun === STREAMS) all();
        };
        const url = stack.url(n % 2, 'pacer');
        const params = sendParams(times(CHUNKS, `task ${n}`));
        return followToCompletion(caller.at(url), params, { again: () => url, onFrame });
      }),
    );
    // Whoever fails early says why.
    await Promise.race([everybodySpeaks, reading]);
    const sent: string[] = [];
    const over = new AbortController();
    const sendOn = async (): Promise<void> => {
      while (!over.signal.aborted) {
        sent.push(await send());
        await delay(20);
      }
    };
    const sending = sendOn();
    hold.release();
    await Promise.race([strike(), sending]);
    const before = sent.length;
    while (sent.length < before + 5) await Promise.race([delay(20), sending]);
    over.abort();
    await sending;

    for (const [n, frames] of (await reading).entries()) {
      expect([frames[0]?.id, increasing(frames), completes(frames.at(-1))]).toEqual([1, true, true]);
      // Nobody ran twice: a second attempt would replace the artifact, and the log would be longer.
      expect(textsOf(frames)).toEqual(Array(CHUNKS).fill(`task ${n}`));
    }
    expect(new Set(sent).size).toBe(sent.length);
    for (const id of sent) await becomes(id, 'TASK_STATE_COMPLETED');
  }

  /** Queue and signals lead to where the slot is now; no sweep has to find anything. */
  async function takesTheShortWay(): Promise<void> {
    await redis.hasAll(PROCESSES);
    const frames: Frame[] = [];
    for await (const frame of caller.stream('SendStreamingMessage', sendParams('after'))) frames.push(frame);
    expect([increasing(frames), textsOf(frames)]).toEqual([true, ['after']]);
    const metadata = { echo: { delayMs: 600_000 } };
    const { result } = await caller.call('SendMessage', {
      ...sendParams('long', { metadata }),
      configuration: { returnImmediately: true },
    });
    const id = result!.task.id as string;
    await becomes(id, 'TASK_STATE_WORKING');
    await caller.at(stack.url(1)).call('CancelTask', { id });
    await becomes(id, 'TASK_STATE_CANCELED');
  }

  it('loses and doubles nothing while the slot of Baton moves to another primary', async () => {
    await takesTheShortWay();
    await underTraffic(() => redis.moveSlot());
    await takesTheShortWay();
  });

  it('loses and doubles nothing when the primary of the slot dies', async () => {
    await underTraffic(() => redis.failOver());
    await takesTheShortWay();
    expect(await inspectRedis(redis.url)).toMatchObject({
      address: expect.stringMatching(/^the Cluster of 127\.0\.0\.1:/),
      writes: true,
    });
  });
});
