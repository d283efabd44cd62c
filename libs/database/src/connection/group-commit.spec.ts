import { setImmediate } from 'node:timers/promises';
import { GroupCommit } from './group-commit.js';
import { noteFailedTenant } from './transient.js';
import { DatabaseUnavailableError } from './database-unavailable-error.js';

// A suspect that takes 100 ms is isolated: real time would isolate keys on a busy machine.
beforeEach(() => {
  jest.useFakeTimers({ doNotFake: ['nextTick', 'setImmediate'] });
});
afterEach(() => {
  jest.useRealTimers();
});

/** Until a flush that may begin has begun. */
async function nextTurn(): Promise<void> {
  await setImmediate();
  await setImmediate();
}

/** A flush that ends when the test says so. */
function controlled() {
  const groups: { items: readonly string[]; end: () => void; fail: (error: Error) => void }[] = [];
  const flush = (items: readonly string[]): Promise<string[]> =>
    new Promise((resolve, reject) => {
      groups.push({ items, end: () => resolve(items.map((item) => `${item} done`)), fail: reject });
    });
  return { groups, flush };
}

/** A statement that Postgres refuses if one of these items is in it. */
const refusing =
  (bad: readonly string[], seen: string[][] = []) =>
  async (items: readonly string[]): Promise<string[]> => {
    seen.push([...items]);
    const found = items.find((item) => bad.includes(item));
    if (found !== undefined) throw Object.assign(new Error(`no ${found}`), { code: '23514' });
    return items.map((item) => `${item} done`);
  };

/** The outcome of each caller. */
const outcomesOf = async (outcomes: readonly Promise<string>[]): Promise<string[]> =>
  (await Promise.allSettled(outcomes)).map((outcome) =>
    outcome.status === 'fulfilled' ? outcome.value : (outcome.reason as Error).message,
  );

describe('a group commit', () => {
  it('flushes a single item at once, and what comes meanwhile together', async () => {
    const { groups, flush } = controlled();
    const commit = new GroupCommit(flush, { maxItems: 10, maxFlushes: 1 });
    const first = commit.submit('a', '1');
    await nextTurn();
    expect(groups.map(({ items }) => items)).toEqual([['1']]);
    const others = ['2', '3', '4'].map((item) => commit.submit('a', item));
    await nextTurn();
    expect(groups).toHaveLength(1);
    groups[0]?.end();
    expect(await first).toBe('1 done');
    await nextTurn();
    expect(groups[1]?.items).toEqual(['2', '3', '4']);
    groups[1]?.end();
    expect(await outcomesOf(others)).toEqual(['2 done', '3 done', '4 done']);
  });

  it('takes what has arrived in the same turn of the event loop together', async () => {
    const { groups, flush } = controlled();
    const commit = new GroupCommit(flush, { maxItems: 10 });
    const both = [commit.submit('a', '1'), Promise.resolve().then(() => commit.submit('a', '2'))];
    await nextTurn();
    expect(groups.map(({ items }) => items)).toEqual([['1', '2']]);
    groups[0]?.end();
    expect(await outcomesOf(both)).toEqual(['1 done', '2 done']);
  });

  it('lets a slow flush hold neither the next one nor other keys', async () => {
    const { groups, flush } = controlled();
    const commit = new GroupCommit(flush, { maxItems: 10, maxFlushes: 2 });
    const sent: Promise<string>[] = [];
    for (const item of ['1', '2', '3', '4']) {
      sent.push(commit.submit('a', item));
      await nextTurn();
    }
    sent.push(commit.submit('b', '5'));
    await nextTurn();
    expect(groups.map(({ items }) => items)).toEqual([['1'], ['2'], ['5']]);
    groups[1]?.end();
    expect(await sent[1]).toBe('2 done');
    await nextTurn();
    expect(groups[3]?.items).toEqual(['3', '4']);
    for (const { end } of groups) end();
    expect(await outcomesOf(sent)).toEqual(['1 done', '2 done', '3 done', '4 done', '5 done']);
  });

  it('bounds a group by number and by weight, and keeps the order', async () => {
    const seen: string[][] = [];
    const commit = new GroupCommit(refusing([], seen), {
      maxItems: 3,
      maxWeight: 10,
      weigh: (item: string) => item.length,
    });
    const items = ['a', 'b', 'c', 'd', 'sixsix', 'seven', 'as heavy as can be', 'e'];
    expect(await outcomesOf(items.map((item) => commit.submit('a', item)))).toEqual(
      items.map((item) => `${item} done`),
    );
    expect(seen).toEqual([['a', 'b', 'c'], ['d', 'sixsix'], ['seven'], ['as heavy as can be'], ['e']]);
  });

  it('never has two items with one identity in a group', async () => {
    const seen: string[][] = [];
    const identify = (item: string): string | undefined => (item === 'free' ? undefined : item);
    const commit = new GroupCommit(refusing([], seen), { maxItems: 10, identify });
    await Promise.all(['x', 'y', 'x', 'free', 'x', 'free'].map((item) => commit.submit('a', item)));
    expect(seen).toEqual([['x', 'y', 'free', 'free'], ['x'], ['x']]);
  });

  it('writes an item with the same identity after it, and delays no other item', async () => {
    const { groups, flush } = controlled();
    const commit = new GroupCommit(flush, { maxItems: 10, identify: (item) => item });
    const twins = ['x', 'x', 'x'].map((item) => commit.submit('a', item));
    await nextTurn();
    const other = commit.submit('a', 'y');
    await nextTurn();
    expect(groups.map(({ items }) => items)).toEqual([['x'], ['y']]);
    for (const index of [1, 0, 2, 3]) {
      groups[index]?.end();
      await nextTurn();
    }
    expect(groups.map(({ items }) => items)).toEqual([['x'], ['y'], ['x'], ['x']]);
    expect(await outcomesOf([...twins, other])).toEqual(['x done', 'x done', 'x done', 'y done']);
  });

  it('passes the error of one item to its caller alone', async () => {
    const seen: string[][] = [];
    const commit = new GroupCommit(refusing(['bad', 'worse'], seen), { maxItems: 10 });
    const outcomes = ['1', '2', 'bad', '3', 'worse'].map((item) => commit.submit('a', item));
    expect(await outcomesOf(outcomes)).toEqual(['1 done', '2 done', 'no bad', '3 done', 'no worse']);
    // What was written is not written again.
    expect(seen.filter((items) => !items.some((item) => item.length > 1)).flat()).toEqual(['1', '2', '3']);
  });

  it('rejects for all callers if it is unknown whether their group was committed, and goes on', async () => {
    const { groups, flush } = controlled();
    const commit = new GroupCommit(flush, { maxItems: 10, maxFlushes: 1 });
    const lost = ['1', '2'].map((item) => commit.submit('a', item));
    await nextTurn();
    const next = commit.submit('a', '3');
    groups[0]?.fail(new DatabaseUnavailableError('the connection was lost'));
    expect(await outcomesOf(lost)).toEqual(['the connection was lost', 'the connection was lost']);
    await nextTurn();
    expect(groups.map(({ items }) => items)).toEqual([['1', '2'], ['3']]);
    groups[1]?.end();
    expect(await next).toBe('3 done');
  });

  it('tries the halves of a group that was in a deadlock', async () => {
    let isFirst = true;
    const commit = new GroupCommit(
      async (items: readonly string[]) => {
        if (isFirst) {
          isFirst = false;
          throw Object.assign(new Error('deadlock detected'), { code: '40P01' });
        }
        return items;
      },
      { maxItems: 10 },
    );
    expect(await outcomesOf(['1', '2', '3'].map((item) => commit.submit('a', item)))).toEqual([
      '1',
      '2',
      '3',
    ]);
  });

  it('rejects for a caller whose item has no outcome', async () => {
    const commit = new GroupCommit(async () => ['only one'], { maxItems: 10 });
    expect(await outcomesOf(['1', '2'].map((item) => commit.submit('a', item)))).toEqual([
      'only one',
      'The flush has returned no outcome for this item',
    ]);
  });

  describe('of keys that share their flushes', () => {
    const tenantOf = (item: string) => item.charAt(0);
    const shares = (): boolean => true;
    const items = ({ items: its }: { items: readonly string[] }): readonly string[] => its;

    it('has as many items of each of them, so that a flood delays no other tenant', async () => {
      const { groups, flush } = controlled();
      const commit = new GroupCommit(flush, { maxItems: 4, maxFlushes: 1, shares });
      const sent = ['a1', 'a2', 'a3', 'a4', 'a5', 'b1', 'c1'].map((item) =>
        commit.submit(item.charAt(0), item),
      );
      await nextTurn();
      groups[0]?.end();
      await nextTurn();
      groups[1]?.end();
      expect(await outcomesOf(sent)).toHaveLength(7);
      expect(groups.map(items)).toEqual([
        ['a1', 'b1', 'c1', 'a2'],
        ['a3', 'a4', 'a5'],
      ]);
    });

    it('serves the keys first that were not in the last flush', async () => {
      const { groups, flush } = controlled();
      const commit = new GroupCommit(flush, { maxItems: 2, maxFlushes: 1, shares });
      const sent = ['a1', 'a2', 'b1', 'b2', 'c1'].map((item) => commit.submit(item.charAt(0), item));
      for (const group of [0, 1, 2]) {
        await nextTurn();
        groups[group]?.end();
      }
      await outcomesOf(sent);
      expect(groups.map(items)).toEqual([['a1', 'b1'], ['c1', 'a2'], ['b2']]);
    });

    it.each([
      ['refuses an item', '23514'],
      ['would wait for a lock', '55P03'],
    ])('writes each key alone, and goes on, if Postgres %s', async (_, code) => {
      const { groups, flush } = controlled();
      const commit = new GroupCommit(flush, { maxItems: 10, maxFlushes: 1, shares });
      const sent = ['a1', 'b1', 'b2'].map((item) => commit.submit(item.charAt(0), item));
      await nextTurn();
      groups[0]?.fail(Object.assign(new Error('it is a1'), { code }));
      await nextTurn();
      const later = ['c1', 'd1'].map((item) => commit.submit(item.charAt(0), item));
      await nextTurn();
      expect(groups.map(items)).toEqual([['a1', 'b1', 'b2'], ['a1'], ['b1', 'b2'], ['c1', 'd1']]);
      groups[1]?.fail(Object.assign(new Error('it is a1'), { code }));
      for (const { end } of groups.slice(2)) end();
      expect(await outcomesOf(sent)).toEqual(['it is a1', 'b1 done', 'b2 done']);
      expect(await outcomesOf(later)).toEqual(['c1 done', 'd1 done']);

      // From now on the key that failed alone is isolated, and has its own flushes.
      const next = ['a2', 'b3', 'c2'].map((item) => commit.submit(item.charAt(0), item));
      await nextTurn();
      expect(groups.slice(4).map(items)).toEqual([['a2'], ['b3', 'c2']]);
      for (const { end } of groups.slice(4)) end();
      await outcomesOf(next);
    });

    it('isolates the key that Postgres names, at once and for a while, and the others together', async () => {
      const { groups, flush } = controlled();
      const commit = new GroupCommit(flush, { maxItems: 10, maxFlushes: 1, shares, tenantOf });
      const sent = ['a1', 'b1', 'c1'].map((item) => commit.submit(item.charAt(0), item));
      await nextTurn();
      const locked = Object.assign(new Error('locked'), { code: '55P03' });
      noteFailedTenant(locked, 'a');
      groups[0]?.fail(locked);
      await nextTurn();
      expect(groups.slice(1).map(items)).toEqual([['a1'], ['b1', 'c1']]);
      // It is well now. But it could be in the way of each next flush for as short a time.
      for (const { end } of groups) end();
      expect(await outcomesOf(sent)).toEqual(['a1 done', 'b1 done', 'c1 done']);
      const next = ['a2', 'b2', 'c2'].map((item) => commit.submit(item.charAt(0), item));
      await nextTurn();
      expect(groups.slice(3).map(items)).toEqual([['a2'], ['b2', 'c2']]);
      for (const { end } of groups) end();
      await outcomesOf(next);
    });

    it('writes each key alone if the flush without the named key fails, too', async () => {
      const { groups, flush } = controlled();
      const commit = new GroupCommit(flush, { maxItems: 10, maxFlushes: 1, shares, tenantOf });
      const sent = ['a1', 'b1', 'c1'].map((item) => commit.submit(item.charAt(0), item));
      for (const [group, key] of [
        [0, 'a'],
        [2, 'b'],
      ] as const) {
        await nextTurn();
        const locked = Object.assign(new Error('locked'), { code: '55P03' });
        noteFailedTenant(locked, key);
        groups[group]?.fail(locked);
      }
      await nextTurn();
      expect(groups.map(items)).toEqual([['a1', 'b1', 'c1'], ['a1'], ['b1', 'c1'], ['b1'], ['c1']]);
      for (const { end } of groups) end();
      expect(await outcomesOf(sent)).toEqual(['a1 done', 'b1 done', 'c1 done']);
    });

    it('keeps later items of a suspect alone while its first write lasts', async () => {
      const { groups, flush } = controlled();
      const commit = new GroupCommit(flush, { maxItems: 10, maxFlushes: 1, shares });
      const sent = ['a1', 'b1'].map((item) => commit.submit(item.charAt(0), item));
      await nextTurn();
      groups[0]?.fail(Object.assign(new Error('locked'), { code: '55P03' }));
      await nextTurn();
      groups[2]?.end();
      await nextTurn();
      // The first write of key `a` alone is not over.
      const next = ['a2', 'b2', 'c1'].map((item) => commit.submit(item.charAt(0), item));
      await nextTurn();
      expect(groups.slice(3).map(items)).toEqual([['a2'], ['b2', 'c1']]);
      for (const { end } of groups) end();
      expect(await outcomesOf([...sent, ...next])).toEqual(
        ['a1', 'b1', 'a2', 'b2', 'c1'].map((item) => `${item} done`),
      );
    });

    it('goes on with what waits when a key shares again', async () => {
      const { groups, flush } = controlled();
      const commit = new GroupCommit(flush, { maxItems: 10, maxFlushes: 1, shares });
      const sent = ['a1', 'b1'].map((item) => commit.submit(item.charAt(0), item));
      await nextTurn();
      groups[0]?.fail(Object.assign(new Error('locked'), { code: '55P03' }));
      await nextTurn();
      for (const item of ['a2', 'a3']) {
        sent.push(commit.submit('a', item));
        await nextTurn();
      }
      expect(groups.map(items)).toEqual([['a1', 'b1'], ['a1'], ['b1'], ['a2']]);
      groups[1]?.end();
      await nextTurn();
      expect(groups.slice(4).map(items)).toEqual([['a3']]);
      for (const { end } of groups) end();
      expect(await outcomesOf(sent)).toEqual(['a1 done', 'b1 done', 'a2 done', 'a3 done']);
    });

    it('writes twins of different flushes one after the other', async () => {
      const { groups, flush } = controlled();
      const commit = new GroupCommit(flush, { maxItems: 10, shares, identify: (item) => item });
      const sent = ['x', 'x', 'y'].map((item) => commit.submit(item === 'y' ? 'b' : 'a', item));
      await nextTurn();
      expect(groups.map(items)).toEqual([['x', 'y']]);
      groups[0]?.end();
      await nextTurn();
      expect(groups.map(items)).toEqual([['x', 'y'], ['x']]);
      groups[1]?.end();
      expect(await outcomesOf(sent)).toEqual(['x done', 'x done', 'y done']);
    });
  });
});
