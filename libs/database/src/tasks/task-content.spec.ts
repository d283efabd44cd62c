import type { ReadMemory } from '@baton/a2a';
import type { ContentRow } from '../log/artifact-events.js';
import { ReadBudget } from './read-budget.js';
import { readRows } from './task-content.js';

const JSON_OF_ROW = 'x'.repeat(1_000);
const PAGE_ROWS = 10;

/** A log of rows with a kilobyte each. */
const pagesOf =
  (count: number) =>
  async (position: number, rows: number): Promise<ContentRow[]> =>
    Array.from({ length: Math.min(rows, count - position) }, (_, i) => ({
      sequence: position + i + 1,
      json: JSON_OF_ROW,
      size: (i + 1) * 1_000,
    }));

describe('the rows of a task', () => {
  it('are parsed page by page, each in a turn of its call', async () => {
    const turns: number[][] = [];
    let parsed = 0;
    const memory: ReadMemory = {
      take: async () => true,
      giveBack: () => undefined,
      turn: async (bytes) => {
        const before = parsed;
        await new Promise(setImmediate);
        turns.push([bytes, before, parsed]);
      },
    };
    const budget = new ReadBudget(1_000_000, undefined, { of: memory, expected: 25_000 });
    const rows = { from: 0, pageRows: PAGE_ROWS, limit: Infinity, budget };
    const read = await readRows(pagesOf(25), rows, () => void (parsed += 1));
    expect([read, parsed]).toEqual([{ isWhole: true, position: 25 }, 25]);
    // Nothing is parsed while it waits.
    expect(turns).toEqual([
      [10_000, 0, 0],
      [10_000, 10, 10],
      [5_000, 20, 20],
    ]);
  });
});
