import type { Statement } from '../connection/database.js';
import { sizeOf } from '../tenants/storage-sql.js';
import { TERMINAL_STATES } from '../tasks/task-row.js';

export interface JournalRow {
  run_id: string;
  position: number;
  value: unknown;
}

/** $1 tenant $2 task */
export const READ_JOURNAL: Statement = {
  name: 'journal-read',
  text: 'SELECT run_id, position, value FROM turn_journal WHERE tenant_id = $1 AND task_id = $2 ORDER BY position',
};

/**
 * Fenced like an event: $1 tenant $2 task $3 run $4 attempt $5 position $6 value. One row if it is there now, be it
 * that this attempt wrote it before and did not hear of it.
 */
export const APPEND_JOURNAL: Statement = {
  name: 'journal-append',
  text: `
WITH task AS (
  SELECT id FROM tasks
  WHERE tenant_id = $1 AND id = $2 AND active_run_id = $3 AND attempt = $4 AND state NOT IN (${TERMINAL_STATES})
  FOR UPDATE
), entry AS (
  INSERT INTO turn_journal (tenant_id, task_id, run_id, attempt, position, value)
  SELECT $1, task.id, $3, $4, $5, $6::json FROM task
  ON CONFLICT DO NOTHING
  RETURNING position
), counted AS (
  UPDATE tasks SET open_bytes = open_bytes + ${sizeOf('$6')} FROM entry WHERE tenant_id = $1 AND id = $2
)
SELECT position FROM entry
UNION ALL
SELECT j.position FROM turn_journal j, task
WHERE j.tenant_id = $1 AND j.task_id = $2 AND j.position = $5 AND j.run_id = $3 AND j.attempt = $4`,
};
