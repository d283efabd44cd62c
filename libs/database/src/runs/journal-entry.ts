import { keyOfTenant } from '../connection/row-security.js';
import type { RunKey } from '../dispatch/run-key.js';
import type { Inputs } from '../sql/statement.js';
import { TERMINAL_STATES } from '../tasks/task-row.js';

/** An entry for the journal of a run's task. */
export interface NewJournalEntry extends RunKey {
  position: number;
  /** JSON */
  value: string;
}

export const ENTRY = {
  tenant_id: ['uuid', ({ tenantId }) => tenantId],
  task_id: ['uuid', ({ taskId }) => taskId],
  run_id: ['uuid', ({ runId }) => runId],
  attempt: ['int', ({ attempt }) => attempt],
  position: ['int', ({ position }) => position],
  value: ['json', ({ value }) => value],
} satisfies Inputs<NewJournalEntry>;

type EntrySql = Record<keyof typeof ENTRY, string>;

/**
 * SQL: the CTEs of a statement that writes one entry. `task` is the task, locked, if the attempt is current and the task has not ended.
 * `entry` is the entry that is stored now: see `APPEND_ENTRIES`.
 */
export const entryCtes = (entry: EntrySql): string => `task AS (
  SELECT id, last_sequence FROM tasks
  WHERE tenant_id = ${keyOfTenant(entry.tenant_id)} AND id = ${entry.task_id} AND active_run_id = ${entry.run_id} AND attempt = ${entry.attempt} AND state NOT IN (${TERMINAL_STATES})
  FOR UPDATE
), entry AS (
  INSERT INTO turn_journal AS j (tenant_id, task_id, run_id, attempt, position, value)
  SELECT ${entry.tenant_id}, task.id, ${entry.run_id}, ${entry.attempt}, ${entry.position}, ${entry.value} FROM task
  ON CONFLICT (tenant_id, task_id, position) DO UPDATE SET value = j.value
    WHERE j.run_id = EXCLUDED.run_id AND j.attempt = EXCLUDED.attempt
  RETURNING position, xmax = 0 AS is_new
)`;
