import type { ReadMemory } from '@baton/a2a';
import type { Database } from '../connection/database.js';
import type { StoredTask, TaskFilter } from './task-records.js';
import { ReadBudget } from './read-budget.js';
import type { TaskReader } from './task-reader.js';
import type { TaskRow } from './task-row.js';

/** What the operations that read tasks work with. */
export interface TaskReads {
  database: Database;
  reader: TaskReader;
  /** Maximum that one call reads of tasks, in bytes of JSON. */
  readBytes: number;
}

/** The tasks of these rows. The first ones get what they need, as long as there is something left of the budget. */
export async function readTasks(
  on: TaskReads,
  rows: readonly TaskRow[],
  { tenantId, historyLength, memory }: Pick<TaskFilter, 'tenantId' | 'historyLength' | 'memory'>,
): Promise<StoredTask[]> {
  const budget = budgetFor(on, rows, memory);
  const tasks: StoredTask[] = [];
  for (const row of rows) {
    const stored = await on.reader.read(tenantId, row, { historyLength, budget });
    if (stored) tasks.push(stored);
  }
  return tasks;
}

/** The budget of a call that reads these rows. */
export function budgetFor(
  { readBytes }: Pick<TaskReads, 'readBytes'>,
  rows: readonly TaskRow[],
  memory: ReadMemory | undefined,
): ReadBudget {
  const expected = rows.reduce((sum, { size }) => sum + size, 0);
  return new ReadBudget(readBytes, undefined, memory && { of: memory, expected });
}
