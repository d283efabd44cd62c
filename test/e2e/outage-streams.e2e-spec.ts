import { setTimeout as delay } from 'node:timers/promises';
import { Client } from 'pg';
import { Hold, times } from '../support/hold.js';
import { driversOf } from '../support/nightly.js';
import { CRASH_SETTINGS } from '../support/crash-settings.js';
import { type Frame, RawCaller, sendParams } from '../support/raw-caller.js';
import { Stack } from '../support/stack.js';
import { completes, increasing, textsOf } from '../support/streams.js';

const TASKS = 30;
const STREAMS = 300;
const CHUNKS = 40;
/** The log alone brings what was said during the outage: the slow tick does not help. */
const hold = new Hold();
const ENV = { ...hold.env, RELAY_TICK_MS: '3600000', WORKER_CONCURRENCY: '100', ...CRASH_SETTINGS };

afterAll(() => hold.remove());

describe.each(driversOf('redis'))('300 streams on %s', (driver) => {
  let stack: Stack;
  beforeAll(async () => {
    stack = await Stack.start({ driver, env: ENV });
  });
  afterAll(() => stack.stop());

  /** Cuts every connection of Baton to Postgres. An autovacuum may be there too, and is not ours to end. */
  async function cutPostgres(): Promise<void> {
    const client = new Client({ connectionString: stack.database.url });
    await client.connect();
    await client.query(
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
       WHERE datname = current_database() AND usename = current_user AND pid <> pg_backend_pid()`,
    );
    await client.end();
  }

  it('go on over an outage of messaging and failed reads of the log, each to its end, without a reader noticing', async () => {
    const { token } = await stack.createTenant();
    const caller = new RawCaller(stack.url(0, 'pacer'), token);
    hold.hold();
    const configuration = { returnImmediately: true };
    const send = async (_: unknown, n: number): Promise<string> => {
      const params = { ...sendParams(times(CHUNKS, `task ${n}`)), configuration };
      return (await caller.call('SendMessage', params)).result!.task.id as string;
    };
    const ids = await Promise.all(Array.from({ length: TASKS }, send));
    let started = 0;
    let all: () => void;
    const everybodyReads = new Promise<void>((resolve) => (all = resolve));
    const read = async (_: unknown, n: number): Promise<Frame[]> => {
      const frames: Frame[] = [];
      for await (const frame of caller.stream('SubscribeToTask', { id: ids[n % TASKS] }, 0)) {
        frames.push(frame);
        if (frames.length === 3 && ++started === STREAMS) all();
      }
      return frames;
    };
    const reading = Promise.all(Array.from({ length: STREAMS }, read));
    // A stream that fails early ends the wait with its error.
    await Promise.race([everybodyReads, reading]);

    hold.release();
    await stack.redis?.crash();
    await cutPostgres();
    await stack.redis?.restart();
    // While they catch up reads fail again and again.
    for (let i = 0; i < 10; i++) {
      await cutPostgres();
      await delay(50);
    }

    for (const [n, frames] of (await reading).entries()) {
      expect([frames[0]?.id, increasing(frames), completes(frames.at(-1))]).toEqual([1, true, true]);
      expect(textsOf(frames)).toEqual(Array(CHUNKS).fill(`task ${n % TASKS}`));
    }
  });
});
