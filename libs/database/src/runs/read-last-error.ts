import { isUuid } from '@baton/a2a';
import type { Database, Statement } from '../connection/database.js';
import { isRunOf } from '../dispatch/run-conditions.js';
import type { RunError, RunErrorRecord } from './run-error.js';

interface ErrorRow {
  run_id: string;
  error_detail: RunError;
}

/** $1 tenant $2 task */
const LAST_ERROR: Statement = {
  name: 'run-last-error',
  text: `
SELECT id AS run_id, error_detail FROM runs r
WHERE ${isRunOf('r', '$1', '$2')} AND error_detail IS NOT NULL
ORDER BY created_at DESC, id DESC LIMIT 1`,
};

/** The last error in an agent's code that a task has had, in any of its turns. */
export async function lastError(
  database: Database,
  tenantId: string,
  taskId: string,
): Promise<RunErrorRecord | undefined> {
  if (!isUuid(taskId)) return undefined;
  const [row] = await database.tenantQuery<ErrorRow>(tenantId, LAST_ERROR, [tenantId, taskId]);
  return row && { runId: row.run_id, ...row.error_detail };
}
