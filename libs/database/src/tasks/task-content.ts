import { keyOfTenant } from '../connection/row-security.js';
import type { Statement } from '../connection/database.js';
import { estimateOf } from '../connection/json-size.js';
import type { ContentRow } from '../log/artifact-events.js';
import { ReadBudget } from './read-budget.js';

// The content of a task is read page by page, within a budget.

/** A page of a history, newest first: $1 tenant $2 task $3 before $4 rows $5 bytes */
export const READ_HISTORY: Statement = {
  name: 'task-read-history',
  text: `
SELECT p.sequence, CASE WHEN p.size <= $5 THEN p.message::text END AS json, p.size::float8 AS size FROM (
  SELECT m.sequence, m.message, sum(${estimateOf('m.message')}) OVER (ORDER BY m.sequence DESC) AS size FROM (
    SELECT sequence, message FROM task_messages
    WHERE tenant_id = $1 AND task_id = $2 AND sequence < $3 ORDER BY sequence DESC LIMIT $4
  ) m
) p ORDER BY p.sequence DESC`,
};

/** $1 tenant $2 task $3 sequence the artifacts are folded to $4 artifacts */
export const KEEP_ARTIFACTS: Statement = {
  name: 'task-keep-artifacts',
  text: `
UPDATE tasks SET artifacts = $4, artifacts_sequence = $3
WHERE tenant_id = ${keyOfTenant('$1')} AND id = $2 AND last_sequence = $3 AND artifacts_sequence < $3`,
};

/** Size of one read, in bytes. It is larger only for a single larger row. */
export const PAGE_BYTES = 1024 * 1024;

/** How far rows were read. */
export interface ReadProgress {
  /** Nothing was left out. */
  isWhole: boolean;
  /** Sequence of the last row that was read. */
  position: number;
}

/** Reads a page after a position. Undefined: the task is gone. */
export type ReadPage = (position: number, rows: number, bytes: number) => Promise<ContentRow[] | undefined>;

/** Which rows to read. */
interface RowsToRead {
  /** Position after which to begin. */
  from: number;
  pageRows: number;
  /** Maximum number of rows. */
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
  onRow: (json: string, sequence: number) => void,
): Promise<ReadProgress | undefined> {
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
    await budget.turn(found.reduce((sum, { json }) => sum + (json?.length ?? 0), 0));
    for (const { sequence, json } of found) {
      if (json === null || sequence === null) break;
      if (!budget.take(Buffer.byteLength(json))) {
        if (!atLeastOne || position !== from) return { isWhole: false, position };
        budget.take(budget.bytes);
      }
      onRow(json, sequence);
      position = sequence;
      left -= 1;
    }
    if (!isLarge && page.length < rows && position === page.at(-1)?.sequence) break;
  }
  return { isWhole: true, position };
}
