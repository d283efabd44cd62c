import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { inspectRedis } from '../../libs/messaging/src/index.js';
import { Hold, times } from '../support/hold.js';
import { DRIVERS } from '../support/index.js';
import { CRASH_SETTINGS } from '../support/crash-settings.js';
import { type Frame, RawCaller, sendParams } from '../support/raw-caller.js';
import { type SentinelRedis, startSentinelRedis } from '../support/sentinel.js';
import { Stack } from '../support/stack.js';
import { completes, followToCompletion, increasing, textsOf } from '../support/streams.js';

const SLOTS = 4;
const CHUNKS = 20;
const withRedis = DRIVERS.includes('redis') ? describe : describe.skip;

withRedis('Redis with a replica and three Sentinels', () => {
  let redis: SentinelRedis;
  let stack: Stack;
  let caller: RawCaller;
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
    return answer.result!.task.id as string;
  };

  it('loses and doubles nothing when the primary dies, though the replica misses what was on the queue', async () => {
    let begun = 0;
    let all = (): void => undefined;
    const everybodySpeaks = new Promise<void>((resolve) => (all = resolve));
    hold.hold();
    const url = stack.url(0, 'pacer');
    const reading = Promise.all(
      Array.from({ length: SLOTS }, async (_, n) => {
        let seen = 0;
        const onFrame = (): void => {
          if (++seen === 3 && ++begun === SLOTS) all();
        };
        const params = sendParams(times(CHUNKS, `task ${n}`));
        return followToCompletion(caller.at(url), params, { again: () => url, onFrame });
      }),
    );
    // Whoever fails early says why.
    await Promise.race([everybodySpeaks, reading]);

    // All slots are taken: some of these are on the queue, of which the replica hears nothing.
    await redis.cutReplication();
    const sent: string[] = [];
    for (let i = 0; i < 6; i++) sent.push(await send());
    const over = new AbortController();
    const sendOn = async (): Promise<void> => {
      while (!over.signal.aborted) {
        // Never refused: a task waits in Postgres.
        sent.push(await send());
        await delay(100);
      }
    };
    const sending = sendOn();
    hold.release();
    await Promise.race([redis.crashPrimary(), sending]);
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
    for (const id of sent) {
      let state = await stateOf(id);
      while (/SUBMITTED|WORKING/.test(state)) {
        await delay(50);
        state = await stateOf(id);
      }
      expect([id, state]).toEqual([id, 'TASK_STATE_COMPLETED']);
    }

    // A new task takes the short way again: queue and signals lead to the new primary.
    const frames: Frame[] = [];
    for await (const frame of caller.stream('SendStreamingMessage', sendParams('after'))) frames.push(frame);
    expect([increasing(frames), textsOf(frames)]).toEqual([true, ['after']]);
    expect(await inspectRedis(redis.url)).toMatchObject({
      address: expect.stringMatching(/^main of Sentinel \(127\.0\.0\.1:/),
      writes: true,
    });
    await expect(inspectRedis(redis.url.replace('sentinel=main', 'sentinel=other'))).rejects.toThrow(
      'does not answer: no Sentinel knows a primary of this name: correct the parameter sentinel of the URL',
    );
  });
});
