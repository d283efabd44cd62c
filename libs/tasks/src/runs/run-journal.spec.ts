import { DatabaseUnavailableError, type JournalRecord } from '@baton/database';
import { RunJournal } from './run-journal.js';

const RUN = { tenantId: 'acme', taskId: 'task', runId: 'run', attempt: 2 };

/** Keeps what is appended; an answer can be lost after the entry was written. */
class FakeStore {
  readonly rows: JournalRecord[] = [{ runId: 'earlier', position: 1, value: 'before' }];
  answersToLose = 0;
  isOwner = true;
  reads = 0;

  read = async (_tenant: string, taskId: string) => {
    this.reads += 1;
    return taskId === 'task' ? [...this.rows] : [];
  };
  append = async (run: typeof RUN, position: number, value: unknown) => {
    if (!this.isOwner) return false;
    if (!this.rows.some((row) => row.position === position)) {
      this.rows.push({ runId: run.runId, position, value });
    }
    if (this.answersToLose-- > 0) throw new DatabaseUnavailableError('Postgres is not available');
    return true;
  };
  restart = async (run: typeof RUN, position: number, value: unknown) => {
    for (let i = this.rows.length - 1; i >= 0; i--)
      if (this.rows[i]!.position < position) this.rows.splice(i, 1);
    return this.append(run, position, value);
  };
}

describe('the journal of a run', () => {
  let store: FakeStore;
  let journal: RunJournal;
  const stop = new AbortController();
  const notes = { note: () => Promise.resolve(true) };
  beforeEach(() => {
    store = new FakeStore();
    journal = new RunJournal(store, RUN, stop.signal, notes, notes);
  });

  it('goes on after what earlier turns and attempts have written', async () => {
    await journal.append({ step: 1 });
    expect(await journal.read()).toEqual([
      { runId: 'earlier', position: 1, value: 'before' },
      { runId: 'run', position: 2, value: { step: 1 } },
    ]);
  });

  it('is read once, whether the runtime reads it first or writes', async () => {
    await journal.read('other');
    await journal.read();
    await journal.append({ step: 1 });
    await journal.append({ step: 2 });
    expect(store.reads).toBe(2);
    expect(store.rows.map(({ position }) => position)).toEqual([1, 2, 3]);
  });

  it('of a new task is written without a read', async () => {
    store.rows.length = 0;
    journal = new RunJournal(store, { ...RUN, attempt: 1 }, stop.signal, notes, notes, true);
    await journal.append({ step: 1 });
    await journal.append({ step: 2 });
    expect(store.reads).toBe(0);
    expect(store.rows.map(({ position }) => position)).toEqual([1, 2]);
  });

  it('keeps the order of entries that are written at once', async () => {
    await Promise.all(['a', 'b', 'c'].map((value) => journal.append(value)));
    expect(store.rows.map(({ value }) => value)).toEqual(['before', 'a', 'b', 'c']);
  });

  it('writes an entry once if the answer of Postgres was lost', async () => {
    store.answersToLose = 1;
    await Promise.all([journal.append('a'), journal.append('b')]);
    expect(store.rows.map(({ value }) => value)).toEqual(['before', 'a', 'b']);
  });

  it('begins anew with an entry whose answer was lost, and goes on after it', async () => {
    store.answersToLose = 1;
    await Promise.all([journal.append('a'), journal.restart('anew'), journal.append('b')]);
    expect(store.rows.map(({ position, value }) => [position, value])).toEqual([
      [3, 'anew'],
      [4, 'b'],
    ]);
  });

  it('refuses a run that another attempt owns', async () => {
    store.isOwner = false;
    await expect(journal.append('late')).rejects.toThrow('another attempt owns the run');
  });

  it('reads those of other tasks, too', async () => {
    expect(await journal.read('other')).toEqual([]);
  });
});
