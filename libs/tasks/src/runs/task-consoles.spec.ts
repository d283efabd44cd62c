import { type ConsoleLine, type ConsoleLineStore, DatabaseUnavailableError } from '@baton/database';
import { Logger } from '@baton/telemetry';
import { TaskConsoles } from './task-consoles.js';

const RUN = { tenantId: 'tenant', taskId: 'task', runId: 'run', attempt: 1 };

/** A console that stores on request, and the stored batches of texts. */
function consoles(append?: (texts: string[]) => boolean | Promise<boolean>) {
  const batches: string[][] = [];
  const store: Pick<ConsoleLineStore, 'append'> = {
    append: async (_run, lines: readonly ConsoleLine[]) => {
      const texts = lines.map(({ text }) => text);
      const isFull = (await append?.(texts)) ?? false;
      batches.push(texts);
      return isFull;
    },
  };
  const all = new TaskConsoles(store as ConsoleLineStore, Logger.silent());
  return { all, batches, store: () => all.onApplicationShutdown() };
}

describe('the lines that agents write', () => {
  it('are stored in one batch for each run, in their order', async () => {
    const { all, batches, store } = consoles();
    const one = all.forRun(RUN);
    const two = all.forRun({ ...RUN, runId: 'other' });
    one('info', '1');
    two('info', 'a');
    one('error', '2');
    await store();
    expect(batches).toEqual([['1', '2'], ['a']]);
    await store();
    expect(batches).toHaveLength(2);
  });

  it('wait while Postgres is away, before those that come later', async () => {
    let isAway = true;
    const { all, batches, store } = consoles(() => {
      if (isAway) throw new DatabaseUnavailableError('away');
      return false;
    });
    const write = all.forRun(RUN);
    write('info', '1');
    await store();
    write('info', '2');
    isAway = false;
    await store();
    expect(batches).toEqual([['1', '2']]);
  });

  it('wait while those before them are stored', async () => {
    jest.useFakeTimers();
    try {
      let stored = (): void => undefined;
      const first = new Promise<void>((resolve) => (stored = resolve));
      const begun: string[] = [];
      const { all } = consoles(async ([text]) => {
        begun.push(text!);
        if (text === '1') await first;
        return false;
      });
      const write = all.forRun(RUN);
      write('info', '1');
      await jest.advanceTimersByTimeAsync(1_000);
      write('info', '2');
      await jest.advanceTimersByTimeAsync(1_000);
      expect(begun).toEqual(['1']);
      stored();
      await jest.advanceTimersByTimeAsync(1_000);
      expect(begun).toEqual(['1', '2']);
    } finally {
      jest.useRealTimers();
    }
  });

  it('are dropped when the task takes no more, and when they cannot be stored', async () => {
    const full = consoles(() => true);
    const write = full.all.forRun(RUN);
    write('info', '1');
    await full.store();
    write('info', '2');
    await full.store();
    expect(full.batches).toEqual([['1']]);
    let tries = 0;
    const broken = consoles(() => {
      tries += 1;
      throw new Error('no such table');
    });
    broken.all.forRun(RUN)('info', '1');
    await broken.store();
    await broken.store();
    expect(tries).toBe(1);
  });

  it('take no more memory than a task keeps, and say how many the worker has dropped', async () => {
    const { all, batches, store } = consoles();
    const write = all.forRun(RUN);
    for (let i = 0; i < 3_000; i++) write('info', String(i));
    await store();
    expect(batches[0]).toHaveLength(1_001);
    const line = 'x'.repeat(4_000);
    const others = Array.from({ length: 60 }, (_, i) => all.forRun({ ...RUN, runId: `other ${i}` }));
    for (const other of others) for (let i = 0; i < 80; i++) other('info', line);
    const late = all.forRun({ ...RUN, runId: 'late' });
    late('info', 'dropped');
    await store();
    const bytes = batches.slice(1).flat().join('').length;
    expect(bytes).toBeLessThan(17 * 1024 * 1024);
    late('info', 'kept');
    await store();
    expect(batches.at(-1)).toEqual([expect.stringMatching(/^\(1 more lines were dropped/), 'kept']);
  });
});
