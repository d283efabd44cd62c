import type { Database } from '../connection/database.js';
import { GET } from './get.js';
import { ReadBudget } from './read-budget.js';
import { TaskReader } from './task-reader.js';
import { INLINE_BYTES, type TaskRow } from './task-row.js';

/**
 * Folds the artifacts of a task that ended without its writer, and stores them in its row. Never rejects: readers of the task fold
 * them if this fails.
 */
export async function keepArtifacts(database: Database, tenantId: string, taskId: string): Promise<void> {
  try {
    const values = GET.values({ task: { tenantId, taskId, historyLength: 0 } });
    const [row] = await database.tenantQuery<TaskRow>(tenantId, GET, values);
    const reader = new TaskReader(database);
    const budget = new ReadBudget(2 * INLINE_BYTES);
    const stored = row && (await reader.read(tenantId, row, { historyLength: 0, budget }));
    if (stored) await reader.keepArtifacts(tenantId, stored);
  } catch {
    // Readers of the task fold them instead.
  }
}
