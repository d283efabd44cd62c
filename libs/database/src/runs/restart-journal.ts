import type { Database } from '../connection/database.js';
import { keyOfTenant } from '../connection/row-security.js';
import type { RunKey } from '../dispatch/run-key.js';
import { type Inputs, one, statement } from '../sql/statement.js';
import { sizeOf } from '../tenants/usage-sql.js';
import { ENTRY, entryCtes, type NewJournalEntry } from './journal-entry.js';

interface Restart extends NewJournalEntry {
  /** How many of the first entries stay. */
  kept: number;
}

const RESTART = {
  ...ENTRY,
  kept: ['int', ({ kept }) => kept],
} satisfies Inputs<Restart>;

/**
 * Writes an entry in place of all entries before it, and takes their bytes off `open_bytes`. That may fall below zero, because the
 * bytes of earlier turns were already counted as stored. `base_sequence` becomes the end of the log: a later attempt takes
 * the events so far for its input, not for output of a dead attempt.
 */
const RESTART_JOURNAL = statement(
  'journal-restart',
  { entry: one(RESTART) },
  ({ entry }) => `
WITH ${entryCtes(entry)}, gone AS (
  DELETE FROM turn_journal j USING entry
  WHERE entry.is_new AND j.tenant_id = ${keyOfTenant(entry.tenant_id)} AND j.task_id = ${entry.task_id} AND j.position < entry.position AND j.position > ${entry.kept}
  RETURNING octet_length(j.value::text) AS bytes
), run AS (
  UPDATE runs r SET base_sequence = task.last_sequence FROM task, entry
  WHERE entry.is_new AND r.tenant_id = ${keyOfTenant(entry.tenant_id)} AND r.id = ${entry.run_id}
), counted AS (
  UPDATE tasks SET open_bytes = open_bytes + ${sizeOf(entry.value)} - freed.bytes
  FROM entry, (SELECT coalesce(sum(bytes), 0)::bigint AS bytes FROM gone) freed
  WHERE entry.is_new AND tenant_id = ${keyOfTenant(entry.tenant_id)} AND id = ${entry.task_id}
)
SELECT position FROM entry`,
);

/**
 * Writes the entry at `position` of a task's journal in place of all entries before it, but the first `kept` ones. Idempotent.
 * @param value any JSON value
 * @returns false if the attempt is not current or the task has ended: nothing was written then
 */
export async function restartJournal(
  database: Database,
  run: RunKey,
  position: number,
  value: unknown,
  kept: number,
): Promise<boolean> {
  const entry = { ...run, position, value: JSON.stringify(value), kept };
  const values = RESTART_JOURNAL.values({ entry });
  return (await database.tenantQuery(run.tenantId, RESTART_JOURNAL, values)).length > 0;
}
