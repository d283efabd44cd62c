import { type EventPayload, type TaskEvent, TaskState, serializePayload } from '@baton/a2a';
import { DatabaseUnavailableError } from '@baton/database';
import type { PublishedEvent } from '@baton/messaging';
import { TaskWatch, type WatchedEvent } from './task-watch.js';
import { LogDeletedError } from './log-deleted-error.js';

const KEY = { tenantId: 'tenant', taskId: 'task', holder: 'tenant' };
const { TASK_STATE_WORKING, TASK_STATE_INPUT_REQUIRED, TASK_STATE_COMPLETED } = TaskState;

function status(state: TaskState): EventPayload {
  const value = {
    taskId: 'task',
    contextId: 'c',
    status: { state, message: undefined, timestamp: undefined },
  };
  return { $case: 'statusUpdate', value: { ...value, metadata: undefined } };
}

/** A log in memory that counts how often it is read. */
class FakeLog {
  reads = 0;
  /** Pages that a reader has not given back. */
  held = 0;
  /** What the next reads fail with. */
  readonly failures: Error[] = [];
  readonly events: TaskEvent[] = [];

  add(...states: TaskState[]): PublishedEvent[] {
    return states.map((state) => {
      const event = { sequence: this.events.length + 1, attempt: 1, payload: status(state) };
      this.events.push(event);
      return { sequence: event.sequence, attempt: 1, json: serializePayload(event.payload) };
    });
  }

  async read(_key: unknown, after: number, signal: AbortSignal) {
    if (signal.aborted) return { events: [], more: false };
    this.reads += 1;
    const error = this.failures.shift();
    if (error) throw error;
    const limit = 500;
    const later = this.events.filter(({ sequence }) => sequence > after);
    this.held += 1;
    const release = () => void (this.held -= 1);
    return { events: later.slice(0, limit), more: later.length > limit, release };
  }
}

const news = (events: PublishedEvent[]) => ({ lastSequence: events.at(-1)?.sequence ?? 0, events });

async function collect(watch: TaskWatch): Promise<number[]> {
  const sequences: number[] = [];
  for await (const events of watch.events()) sequences.push(...events.map(({ sequence }) => sequence));
  return sequences;
}

describe('TaskWatch', () => {
  let log: FakeLog;
  const watchFrom = (cursor: number, head = cursor) => new TaskWatch(KEY, log, cursor, head);

  beforeEach(() => {
    log = new FakeLog();
  });

  it('yields signalled events without reading the log', async () => {
    const watch = watchFrom(0);
    const seen = collect(watch);
    watch.notify(news(log.add(TASK_STATE_WORKING, TASK_STATE_WORKING)));
    watch.notify(news(log.add(TASK_STATE_COMPLETED)));
    expect(await seen).toEqual([1, 2, 3]);
    expect(log.reads).toBe(0);
  });

  it('gives a page of the log back when its reader asks for the next one, leaves, or is ended', async () => {
    log.add(TASK_STATE_WORKING, TASK_STATE_WORKING);
    const watch = watchFrom(0, 2);
    const events = watch.events();
    const { value: page } = await events.next();
    expect([log.held, page]).toEqual([1, [expect.anything(), expect.anything()]]);
    const next = events.next();
    await new Promise(setImmediate);
    expect(log.held).toBe(0);
    watch.notify(news(log.add(TASK_STATE_COMPLETED)));
    await next;
    await events.return(undefined);
    expect([log.reads, log.held]).toEqual([1, 0]);

    const ended = watchFrom(0, 3);
    await ended.events().next();
    expect(log.held).toBe(1);
    ended.end();
    expect(log.held).toBe(0);

    const left = watchFrom(0, 3);
    const read = left.events();
    await read.next();
    await read.return(undefined);
    expect(log.held).toBe(0);

    // Ended while the page is read.
    const late = watchFrom(0, 3);
    const never = late.events().next();
    late.end();
    expect([(await never).done, log.held]).toEqual([true, 0]);
  });

  it('gives the readers of one page an array each, which the reader may empty', async () => {
    log.add(TASK_STATE_WORKING, TASK_STATE_COMPLETED);
    const page = await log.read({}, 0, new AbortController().signal);
    jest.spyOn(log, 'read').mockResolvedValue(page);
    const taken: WatchedEvent[][] = [];
    for (const watch of [watchFrom(0, 2), watchFrom(0, 2)]) {
      const { value } = (await watch.events().next()) as { value: WatchedEvent[] };
      taken.push(value.splice(0));
    }
    expect(taken).toEqual([page.events, page.events]);
    expect(page.events).toHaveLength(2);
  });

  it('gives all readers of a signal the same event, and parses it when one asks', async () => {
    const artifact = { sequence: 1, attempt: 1, json: '{"artifactUpdate":not parsed}' };
    const [completed] = log.add(TASK_STATE_COMPLETED);
    const signal = { lastSequence: 2, events: [artifact, { ...completed!, sequence: 2 }] };
    const readers = [watchFrom(0), watchFrom(0)].map(async (watch) => {
      watch.notify(signal);
      const events: WatchedEvent[] = [];
      for await (const read of watch.events()) events.push(...read);
      return events;
    });
    const [one, other] = await Promise.all(readers);
    expect(one?.map(({ json }) => json)).toEqual([artifact.json, completed?.json]);
    expect(other?.[1]).toBe(one?.[1]);
    expect(() => one?.[0]?.payload).toThrow();
    expect(one?.[1]?.payload).toEqual(log.events[0]?.payload);
    expect(other?.[1]?.payload).toBe(one?.[1]?.payload);
  });

  it('first yields what the log holds after the cursor', async () => {
    log.add(TASK_STATE_WORKING, TASK_STATE_WORKING, TASK_STATE_COMPLETED);
    expect(await collect(watchFrom(1, 3))).toEqual([2, 3]);
  });

  it('drops a signal that comes twice, late or out of order', async () => {
    const [one, two, three] = log.add(TASK_STATE_WORKING, TASK_STATE_WORKING, TASK_STATE_COMPLETED);
    const watch = watchFrom(0);
    const seen = collect(watch);
    watch.notify(news([two!]));
    watch.notify(news([one!]));
    watch.notify(news([two!, three!]));
    expect(await seen).toEqual([1, 2, 3]);
  });

  it('does not read the log for a late signal without events: its reader has them', async () => {
    log.add(TASK_STATE_WORKING);
    const watch = watchFrom(1);
    const seen = collect(watch);
    watch.notify({ lastSequence: 1, events: [] });
    watch.notify(news(log.add(TASK_STATE_COMPLETED)));
    expect([await seen, log.reads]).toEqual([[2], 0]);
  });

  it('reads the log again on a gap', async () => {
    const events = log.add(TASK_STATE_WORKING, TASK_STATE_WORKING, TASK_STATE_WORKING, TASK_STATE_COMPLETED);
    const watch = watchFrom(0);
    const seen = collect(watch);
    watch.notify(news(events.slice(0, 1)));
    watch.notify(news(events.slice(3)));
    expect(await seen).toEqual([1, 2, 3, 4]);
    expect(log.reads).toBe(1);
  });

  it('reads the log for a signal that was too big to carry its events', async () => {
    const watch = watchFrom(0);
    const seen = collect(watch);
    log.add(TASK_STATE_WORKING, TASK_STATE_COMPLETED);
    watch.notify({ lastSequence: 2, events: [] });
    expect(await seen).toEqual([1, 2]);
  });

  it('finds events without a signal on refresh', async () => {
    const watch = watchFrom(0);
    const seen = collect(watch);
    log.add(TASK_STATE_WORKING, TASK_STATE_COMPLETED);
    watch.refresh();
    expect(await seen).toEqual([1, 2]);
  });

  it('keeps no more than a bounded number of events for a slow reader, and loses none', async () => {
    const watch = watchFrom(0);
    for (let i = 0; i < 2_000; i++) watch.notify(news(log.add(TASK_STATE_WORKING)));
    watch.notify(news(log.add(TASK_STATE_COMPLETED)));
    const seen = await collect(watch);
    expect(seen).toEqual(Array.from({ length: 2_001 }, (_, i) => i + 1));
    // What was not kept is read again: all of it but the last page at the least.
    expect(log.reads).toBeGreaterThanOrEqual(4);
  });

  it('keeps no more than a bounded size of large events for a slow reader', async () => {
    const watch = watchFrom(0);
    const large = (): PublishedEvent[] =>
      log.add(TASK_STATE_WORKING).map((event) => ({ ...event, json: event.json + ' '.repeat(50_000) }));
    for (let i = 0; i < 5; i++) watch.notify(news(large()));
    const first = watch.events();
    const { value: kept = [] } = await first.next();
    expect(kept).toHaveLength(5);
    expect(log.reads).toBe(0);
    for (let i = 0; i < 7; i++) watch.notify(news(large()));
    watch.notify(news(log.add(TASK_STATE_COMPLETED)));
    const rest: number[] = [];
    for await (const events of first) rest.push(...events.map(({ sequence }) => sequence));
    expect(rest).toEqual(Array.from({ length: 8 }, (_, i) => i + 6));
    expect(log.reads).toBeGreaterThan(0);
  });

  it('ends at an interruption that is news, but not at one that lies in the past', async () => {
    log.add(TASK_STATE_INPUT_REQUIRED, TASK_STATE_WORKING, TASK_STATE_INPUT_REQUIRED);
    expect(await collect(watchFrom(0, 3))).toEqual([1, 2, 3]);
  });

  it('rejects for a reader whose log is deleted under it, with any rest of the log', async () => {
    const states = Array.from({ length: 1_200 }, () => TASK_STATE_WORKING);
    log.add(...states, TASK_STATE_COMPLETED);
    const watch = watchFrom(0, 1_201);
    const seen: number[] = [];
    const reading = (async () => {
      for await (const events of watch.events()) {
        seen.push(...events.map(({ sequence }) => sequence));
        // The first page is read: a slice of the second goes.
        if (seen.at(-1) === 500) log.events.splice(0, 600);
      }
    })();
    await expect(reading).rejects.toBeInstanceOf(LogDeletedError);
    expect(seen).toEqual(Array.from({ length: 500 }, (_, i) => i + 1));
  });

  it('rejects for a reader after the deletion of the log, and for one that waits at that time', async () => {
    await expect(collect(watchFrom(3, 9))).rejects.toBeInstanceOf(LogDeletedError);
    const waiting = watchFrom(2);
    const seen = collect(waiting);
    // The last signals were lost, and only the tombstone has the last sequence of the log.
    waiting.refresh(4);
    await expect(seen).rejects.toBeInstanceOf(LogDeletedError);
  });

  it('goes on when Postgres is back, and ends with an error that stays', async () => {
    log.add(TASK_STATE_WORKING, TASK_STATE_COMPLETED);
    log.failures.push(new DatabaseUnavailableError('away'), new DatabaseUnavailableError('still away'));
    expect(await collect(watchFrom(0, 2))).toEqual([1, 2]);
    expect(log.reads).toBe(3);
    log.failures.push(new Error('broken'));
    await expect(collect(watchFrom(0, 2))).rejects.toThrow('broken');
  });

  it('ends at once while Postgres is away', async () => {
    log.failures.push(...Array.from({ length: 100 }, () => new DatabaseUnavailableError('away')));
    const watch = watchFrom(0, 2);
    const seen = collect(watch);
    watch.end();
    expect(await seen).toEqual([]);
  });

  it('ends at once, also while it waits', async () => {
    const watch = watchFrom(0);
    const seen = collect(watch);
    watch.end();
    expect(await seen).toEqual([]);
  });

  it('leaves out what the reader has from a snapshot', async () => {
    const watch = watchFrom(0);
    watch.notify(news(log.add(TASK_STATE_WORKING, TASK_STATE_WORKING, TASK_STATE_COMPLETED)));
    watch.skipTo(2);
    expect(await collect(watch)).toEqual([3]);
  });
});
