import type { ReadMemory } from '@baton/a2a';
import type { ContentRow } from './content-sql.js';

/** What is read at a time, in bytes; more only where a single row is larger. */
export const PAGE_BYTES = 1024 * 1024;

/** How much may still be read for one request, in bytes of JSON. */
export class ReadBudget {
  private asked: Promise<boolean> | undefined;

  /** @param memory asked once for what is expected to be read, before more is read than came with the rows of tasks */
  constructor(
    private left: number,
    private readonly whole?: ReadBudget,
    private readonly memory?: { of: ReadMemory; expected: number },
  ) {}

  /** Whether more may be read than came with the rows. @throws whatever the memory does */
  granted(): Promise<boolean> {
    if (this.whole) return this.whole.granted();
    const { of, expected } = this.memory ?? {};
    this.asked ??= of?.take(Math.min(expected ?? 0, this.left)) ?? Promise.resolve(true);
    return this.asked;
  }

  get bytes(): number {
    return Math.floor(Math.min(this.left, this.whole?.bytes ?? Infinity));
  }

  /** @returns whether there was so much left; then it is used up */
  take(bytes: number): boolean {
    if (bytes > this.bytes) return false;
    this.left -= bytes;
    this.whole?.take(bytes);
    return true;
  }

  /** A part of it: what is taken of the part is taken of the whole. */
  part(share: number): ReadBudget {
    return new ReadBudget(this.bytes * share, this);
  }
}

/** How far rows were read. */
export interface Progress {
  /** Nothing was left out. */
  isWhole: boolean;
  /** Sequence of the last row that was read. */
  position: number;
}

/** Reads a page after a position. Undefined: the task is gone. */
export type ReadPage = (position: number, rows: number, bytes: number) => Promise<ContentRow[] | undefined>;

/** Which rows to read. */
export interface RowsToRead {
  /** Position after which to begin. */
  from: number;
  pageRows: number;
  /** Most rows. */
  limit: number;
  budget: ReadBudget;
  /** The first row is read however large it is. */
  atLeastOne?: boolean;
}

/**
 * Read rows, page by page, until there are no more or the budget is used up. The sizes that a page is made by may be
 * estimates; what counts is what was read. Undefined: the task is gone.
 */
export async function readRows(
  ask: ReadPage,
  { from, pageRows, limit, budget, atLeastOne = false }: RowsToRead,
  onRow: (json: string) => void,
): Promise<Progress | undefined> {
  let position = from;
  for (let left = limit; left > 0;) {
    const rows = Math.min(pageRows, left);
    const page = await ask(position, rows, Math.min(PAGE_BYTES, budget.bytes));
    const [next] = page ?? [];
    if (!page || !next) return page && { isWhole: true, position };
    const isLarge = next.json === null;
    const isFree = atLeastOne && position === from;
    if (isLarge && !isFree && (next.size ?? 0) > budget.bytes) return { isWhole: false, position };
    // A row may be larger than a page.
    const found = isLarge ? await ask(position, 1, next.size ?? 0) : page;
    if (!found?.[0]) return undefined;
    for (const { sequence, json } of found) {
      if (json === null || sequence === null) break;
      if (!budget.take(Buffer.byteLength(json))) {
        if (!atLeastOne || position !== from) return { isWhole: false, position };
        budget.take(budget.bytes);
      }
      onRow(json);
      position = sequence;
      left -= 1;
    }
    if (!isLarge && page.length < rows && position === page.at(-1)?.sequence) break;
  }
  return { isWhole: true, position };
}
