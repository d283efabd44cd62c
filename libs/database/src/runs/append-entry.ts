import { keyOfTenant } from '../connection/row-security.js';
import type { RunKey } from '../dispatch/run-key.js';
import { list, statement } from '../sql/statement.js';
import { TERMINAL_STATES } from '../tasks/task-row.js';
import { ENTRY, type NewJournalEntry } from './journal-entry.js';
import type { BatchOperation, RunBatches } from './run-batches.js';

interface StoredEntry {
  id: string;
}

/**
 * An entry for the journal of each of these tasks, fenced like an event. Returns a row for each entry that is stored now, also if
 * this attempt wrote it before and lost the answer. The first write may still be under way. It is then committed after this
 * statement has begun, and is visible to it only as a conflict. So a conflict with an entry of the same attempt updates the entry
 * as it is. `xmax` is 0 in a new one.
 */
export const APPEND_ENTRIES = statement(
  'journal-append-4',
  { entries: list(ENTRY) },
  ({ entries }) => `
WITH task AS (
  SELECT t.tenant_id, t.id, k.run_id, k.attempt, k.position, k.value FROM ${entries.rows('k')}
  JOIN tasks t ON t.tenant_id = ${keyOfTenant('k.tenant_id')} AND t.id = k.task_id AND t.active_run_id = k.run_id AND t.attempt = k.attempt
    AND t.state NOT IN (${TERMINAL_STATES})
  FOR UPDATE OF t
), entry AS (
  INSERT INTO turn_journal AS j (tenant_id, task_id, run_id, attempt, position, value)
  SELECT tenant_id, id, run_id, attempt, position, value FROM task
  ON CONFLICT (tenant_id, task_id, position) DO UPDATE SET value = j.value
    WHERE j.run_id = EXCLUDED.run_id AND j.attempt = EXCLUDED.attempt
  RETURNING j.task_id, xmax = 0 AS is_new
), counted AS (
  UPDATE tasks t SET open_bytes = t.open_bytes + octet_length(task.value::text) FROM task, entry
  WHERE entry.is_new AND entry.task_id = task.id AND t.tenant_id = ${keyOfTenant('task.tenant_id')} AND t.id = task.id
)
SELECT task_id AS id FROM entry`,
);

/** Entries in a batch, each of another task. An append of events to the same task waits, as it changes the same row. */
export const ENTRIES: BatchOperation<NewJournalEntry, StoredEntry> = {
  identify: ({ taskId }) => taskId,
  charsOf: ({ value }) => value.length,
  prepare: (entries) => ({
    statement: APPEND_ENTRIES,
    values: APPEND_ENTRIES.values({ entries }),
    results: (rows) => {
      const stored = new Map((rows as StoredEntry[]).map((row) => [row.id, row]));
      return entries.map(({ taskId }) => stored.get(taskId));
    },
  }),
};

/**
 * Writes the entry at `position` of a task's journal. Idempotent.
 * @param value any JSON value
 * @returns false if the attempt is not current or the task has ended: nothing was written then
 */
export async function appendEntry(
  on: { batches: RunBatches },
  { tenantId, taskId, runId, attempt }: RunKey,
  position: number,
  value: unknown,
): Promise<boolean> {
  const entry = { tenantId, taskId, runId, attempt, position, value: JSON.stringify(value) };
  return (await on.batches.submit(ENTRIES, entry)) !== undefined;
}
