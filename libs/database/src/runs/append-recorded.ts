import type { Database } from '../connection/database.js';
import { keyOfTenant } from '../connection/row-security.js';
import type { RunKey } from '../dispatch/run-key.js';
import { type Inputs, one, statement } from '../sql/statement.js';
import { sizeOf } from '../tenants/usage-sql.js';
import { ENTRY, entryCtes, type NewJournalEntry } from './journal-entry.js';

interface EntryWithRecord extends NewJournalEntry {
  /** JSON of the record of the model call that the entry is about. */
  record: string;
}

const RECORDED_ENTRY = {
  ...ENTRY,
  record: ['json', ({ record }) => record],
  record_bytes: ['int', ({ record }) => Buffer.byteLength(record)],
} satisfies Inputs<EntryWithRecord>;

/** As `APPEND_ENTRIES`, of one entry, with the record of a model call. It is written with a new entry only. */
const APPEND_RECORDED = statement(
  'journal-append-recorded-3',
  { entry: one(RECORDED_ENTRY) },
  ({ entry }) => `
WITH ${entryCtes(entry)}, kept AS (
  INSERT INTO call_records (tenant_id, task_id, position, run_id, attempt, value, bytes)
  SELECT ${entry.tenant_id}, ${entry.task_id}, position, ${entry.run_id}, ${entry.attempt}, ${entry.record}, ${entry.record_bytes}
  FROM entry WHERE is_new
  ON CONFLICT (tenant_id, task_id, position) DO NOTHING
), counted AS (
  UPDATE tasks SET open_bytes = open_bytes + ${sizeOf(entry.value)} + ${entry.record_bytes} FROM entry
  WHERE entry.is_new AND tenant_id = ${keyOfTenant(entry.tenant_id)} AND id = ${entry.task_id}
)
SELECT position FROM entry`,
);

/**
 * Writes the entry at `position` of a task's journal, and the record of its model call. Idempotent.
 * @param value any JSON value
 * @param record JSON
 * @returns false if the attempt is not current or the task has ended: nothing was written then
 */
export async function appendRecorded(
  database: Database,
  run: RunKey,
  position: number,
  value: unknown,
  record: string,
): Promise<boolean> {
  const entry = { ...run, position, value: JSON.stringify(value), record };
  const values = APPEND_RECORDED.values({ entry });
  return (await database.tenantQuery(run.tenantId, APPEND_RECORDED, values)).length > 0;
}
