import { LogReader, type LogPage } from './log-reader.js';
import { PageMemory } from './page-memory.js';

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
  const key = (taskId: string, tenantId = 'acme') => ({ tenantId, taskId, holder: tenantId });
  let store: SlowStore;
  let log: LogReader;
  beforeEach(() => {
    store = new SlowStore();
    log = new LogReader(store, 2, new PageMemory(Infinity));
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

  it('are left out when no reader waits for them', async () => {
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

describe('pages of logs that readers have not taken', () => {
  const KB = 1024;
  const open = new AbortController().signal;
  const key = (taskId: string, holder = 'acme') => ({ tenantId: holder, taskId, holder });
  /** Reads of each task. */
  let reads: string[];
  /** Sizes in KB of pages that have grown since the name of their task was made. */
  let sizes: Map<string, number>;
  let log: LogReader;

  /** Resolves after everything that can continue has done so. */
  const settled = () => new Promise((resolve) => setImmediate(resolve));
  const read = (taskId: string, { holder = 'acme', signal = open } = {}) => {
    const kept: { page?: LogPage } = {};
    void log.read(key(taskId, holder), 0, signal).then((page) => (kept.page = page));
    return kept;
  };

  beforeEach(() => {
    reads = [];
    sizes = new Map();
    // The name of a task begins with the size of its page in KB. 100 KB of memory: a holder has 50.
    const readPage = async ({ taskId }: { taskId: string }) => {
      reads.push(taskId);
      const json = 'x'.repeat((sizes.get(taskId) ?? Number.parseInt(taskId, 10)) * KB);
      return { events: [{ sequence: 1, attempt: 1, json }], more: false } as never;
    };
    log = new LogReader({ readPage }, 2, new PageMemory(100 * KB));
  });

  it('have a bound: a page without room is dropped, and read again when a reader has taken another', async () => {
    const pages = ['20a', '20b', '20c'].map((task) => read(task));
    await settled();
    expect(pages.map(({ page }) => page !== undefined)).toEqual([true, true, false]);
    expect(reads).toEqual(['20a', '20b', '20c']);
    pages[0]?.page?.release?.();
    // Again and again: it is given back once.
    pages[0]?.page?.release?.();
    const fourth = read('20d');
    await settled();
    expect(pages[2]?.page?.events).toHaveLength(1);
    expect(reads).toEqual(['20a', '20b', '20c', '20c', '20d']);
    expect(fourth.page).toBeUndefined();
  });

  it('take one share for all readers of a page, until the last has taken it', async () => {
    // They keep the reader busy, so that the two meet.
    read('1a');
    read('1b');
    const [first, second] = [read('40a'), read('40a')];
    await settled();
    expect(reads).toEqual(['1a', '1b', '40a']);
    const next = read('40b');
    first.page?.release?.();
    await settled();
    expect(next.page).toBeUndefined();
    second.page?.release?.();
    await settled();
    expect(next.page).toBeDefined();
  });

  it('of one holder leave room for others, and every holder gets at least one', async () => {
    const many = ['acme', 'acme', 'globex', 'globex'].map((holder, i) => read(`50-${String(i)}`, { holder }));
    const small = read('16small');
    const other = read('50other', { holder: 'initech' });
    const larger = read('900larger', { holder: 'hooli' });
    await settled();
    expect(many.map(({ page }) => page !== undefined)).toEqual([true, false, true, false]);
    for (const { page } of [small, other, larger]) expect(page).toBeDefined();
  });

  it('give their memory back if the last reader leaves while the page is read again', async () => {
    const leaving = new AbortController();
    const first = read('50a');
    const second = read('50b', { signal: leaving.signal });
    await settled();
    first.page?.release?.();
    // The page of the second reader has its memory now, and is being read.
    leaving.abort();
    await settled();
    expect(second.page?.events).toEqual([]);
    expect(reads).toEqual(['50a', '50b', '50b']);
    const third = read('50c');
    await settled();
    expect(third.page).toBeDefined();
  });

  it('count with the size that they have when they are read again', async () => {
    const first = read('30a');
    const grown = read('30b');
    await settled();
    sizes.set('30b', 45);
    first.page?.release?.();
    await settled();
    expect(grown.page?.events).toHaveLength(1);
    const [next, last] = [read('20c'), read('40d')];
    await settled();
    expect([next.page, last.page]).toEqual([undefined, undefined]);
    grown.page?.release?.();
    await settled();
    // Neither more nor less than the page had is free again: the next page, and none beside it.
    expect(next.page).toBeDefined();
    expect(last.page).toBeUndefined();
  });

  it('are not read again for a reader that has left', async () => {
    const leaving = new AbortController();
    const first = read('50a');
    const second = read('50b', { signal: leaving.signal });
    const third = read('50c');
    await settled();
    leaving.abort();
    await settled();
    expect(second.page?.events).toEqual([]);
    first.page?.release?.();
    await settled();
    expect(third.page).toBeDefined();
    expect(reads).toEqual(['50a', '50b', '50c', '50c']);
  });
});
