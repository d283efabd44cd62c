import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { type Hold, times } from './hold.js';
import { type Frame, RawCaller, sendParams } from './raw-caller.js';
import { completes, followToCompletion, increasing, textsOf } from './streams.js';

const CHUNKS = 20;

interface TrafficOptions {
  /** How many tasks of the agent `pacer` are streamed, and the URL at which each is read. */
  streams: number;
  urlOf: (stream: number) => string;
  hold: Hold;
  /** The pause between two sends, in ms. */
  pauseMs: number;
}

/** Streams and sends while Redis fails over, for tests that look for what is lost, doubled or out of order. */
export class FailoverTraffic {
  constructor(
    private readonly caller: RawCaller,
    private readonly options: TrafficOptions,
  ) {}

  /** Sends a task. @returns its id */
  async send(): Promise<string> {
    const { message } = sendParams(randomUUID());
    const configuration = { returnImmediately: true };
    const answer = await this.caller.call('SendMessage', { message, configuration });
    // Never refused: a task waits in Postgres.
    return answer.result!.task.id as string;
  }

  /** Waits until a task has this state. Fails if it gets another one in which it neither waits nor works. */
  async becomes(id: string, wanted: string): Promise<void> {
    const stateOf = async () => (await this.caller.call('GetTask', { id })).result?.status.state as string;
    let state = await stateOf();
    while (/SUBMITTED|WORKING/.test(state) && state !== wanted) {
      await delay(50);
      state = await stateOf();
    }
    expect([id, state]).toEqual([id, wanted]);
  }

  /**
   * Strikes while streams are read and tasks are sent. Then every stream must be whole and in order, and every task completed.
   * @param prepare called while the agents of all streams wait, so that their slots are taken. It may send tasks, and returns their ids
   */
  async during(
    strike: () => Promise<void>,
    prepare: () => Promise<string[]> = () => Promise.resolve([]),
  ): Promise<void> {
    const { streams, urlOf, hold, pauseMs } = this.options;
    let begun = 0;
    let all = (): void => undefined;
    const everybodySpeaks = new Promise<void>((resolve) => (all = resolve));
    hold.hold();
    const reading = Promise.all(
      Array.from({ length: streams }, async (_, n) => {
        let seen = 0;
        const onFrame = (): void => {
          if (++seen === 3 && ++begun === streams) all();
        };
        const url = urlOf(n);
        const params = sendParams(times(CHUNKS, `task ${n}`));
        return followToCompletion(this.caller.at(url), params, { again: () => url, onFrame });
      }),
    );
    // If a stream fails early, the race rejects with its error.
    await Promise.race([everybodySpeaks, reading]);
    const sent = await prepare();
    const over = new AbortController();
    const sendOn = async (): Promise<void> => {
      while (!over.signal.aborted) {
        sent.push(await this.send());
        await delay(pauseMs);
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
      // No task ran twice: a second attempt would replace the artifact, and the log would be longer.
      expect(textsOf(frames)).toEqual(Array(CHUNKS).fill(`task ${n}`));
    }
    expect(new Set(sent).size).toBe(sent.length);
    for (const id of sent) await this.becomes(id, 'TASK_STATE_COMPLETED');
  }

  /** A new task is streamed whole: queue and signals lead to the Redis that is there now. */
  async streamsOne(): Promise<void> {
    const frames: Frame[] = [];
    for await (const frame of this.caller.stream('SendStreamingMessage', sendParams('after')))
      frames.push(frame);
    expect([increasing(frames), textsOf(frames)]).toEqual([true, ['after']]);
  }
}
