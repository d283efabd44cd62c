import { CallTurns } from './call-turns.js';

const nextTurn = () => new Promise((resolve) => setImmediate(resolve));

describe('the turns of new calls', () => {
  let turns: CallTurns<string>;
  let begun: string[];

  beforeEach(() => {
    turns = new CallTurns();
    begun = [];
  });

  const open = (connection: string, count = 1): void => {
    for (let i = 0; i < count; i++) turns.take(connection, () => begun.push(connection));
  };

  it('let a call begin at once while there are few', () => {
    open('one');
    expect(begun).toEqual(['one']);
  });

  it('let some of many calls begin, then others of the event loop, and so on', async () => {
    open('one', 100);
    const seen: number[] = [];
    while (begun.length < 100) {
      await nextTurn();
      seen.push(begun.length);
    }
    expect(seen.length).toBeGreaterThan(10);
    expect(Math.max(...seen.map((count, i) => count - (seen[i - 1] ?? 0)))).toBeLessThanOrEqual(16);
  });

  it('come to a connection with one call before most calls of a connection with many', async () => {
    open('many', 100);
    open('one');
    while (!begun.includes('one')) await nextTurn();
    expect(begun.length).toBeLessThan(20);
    while (begun.length < 101) await nextTurn();
    expect(begun.filter((each) => each === 'many')).toHaveLength(100);
  });

  it('do not come to a call that has left the line, which then is not kept', async () => {
    open('many', 20);
    const leave = turns.take('one', () => begun.push('one'));
    expect(turns.isWaiting('one')).toBe(true);
    leave?.();
    expect(turns.isWaiting('one')).toBe(false);
    while (begun.length < 20) await nextTurn();
    await nextTurn();
    expect(begun).not.toContain('one');
  });
});
