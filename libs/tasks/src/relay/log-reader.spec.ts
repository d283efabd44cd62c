import { LogReader } from './log-reader.js';

/** A store whose reads are answered by hand, in the order in which they have begun. */
class SlowStore {
  readonly begun: string[] = [];
  private readonly answers: (() => void)[] = [];

  readPage({ taskId }: { taskId: string }, after: number): Promise<never> {
    this.begun.push(`${taskId} ${after}`);
    return new Promise((resolve) => {
      this.answers.push(() => resolve({ events: [], more: false } as never));
    });
  }

  /** Answers the oldest read. */
  async answer(): Promise<void> {
    this.answers.shift()?.();
    await new Promise(setImmediate);
  }
}

describe('reads of logs', () => {
  const open = new AbortController().signal;
  const key = (taskId: string, tenantId = 'acme') => ({ tenantId, taskId });
  let store: SlowStore;
  let log: LogReader;
  beforeEach(() => {
    store = new SlowStore();
    log = new LogReader(store, 2);
  });

  it('run few at a time, and share the page that has not been begun', async () => {
    const pages = ['a', 'b', 'c', 'c', 'c', 'd'].map((task) => log.read(key(task), 7, open));
    pages.push(log.read(key('c'), 8, open));
    expect(store.begun).toEqual(['a 7', 'b 7']);
    for (let i = 0; i < 5; i++) await store.answer();
    await Promise.all(pages);
    expect(store.begun).toEqual(['a 7', 'b 7', 'c 7', 'd 7', 'c 8']);
  });

  it('are made again for a reader that comes when the read has begun: it may be too old', async () => {
    const pages = [log.read(key('a'), 7, open), log.read(key('a'), 7, open)];
    expect(store.begun).toEqual(['a 7', 'a 7']);
    for (const _ of pages) await store.answer();
    await Promise.all(pages);
  });

  it('of a tenant with many do not keep another waiting', async () => {
    const pages = ['a', 'b', 'c', 'd', 'e'].map((task) => log.read(key(task), 0, open));
    pages.push(log.read(key('other', 'globex'), 0, open));
    await store.answer();
    await store.answer();
    expect(store.begun).toEqual(['a 0', 'b 0', 'c 0', 'other 0']);
    for (let i = 0; i < 4; i++) await store.answer();
    await Promise.all(pages);
  });

  it('are left out when nobody waits for them any more', async () => {
    const gone = new AbortController();
    const pages = [log.read(key('a'), 0, open), log.read(key('b'), 0, open)];
    const left = log.read(key('c'), 0, gone.signal);
    gone.abort();
    expect(await left).toEqual({ events: [], more: false });
    pages.push(log.read(key('d'), 0, open));
    for (let i = 0; i < 3; i++) await store.answer();
    await Promise.all(pages);
    expect(store.begun).toEqual(['a 0', 'b 0', 'd 0']);
  });
});
