import { escapeIdentifier } from 'pg';
import type { BackupSession } from './backup-session.js';

// The file of an export has one JSON object a line: a header, a record for each row, and an end that counts them.

/** Version of the layout of the file. A reader refuses a higher number. */
export const EXPORT_VERSION = 1;

/** A table whose rows are in an export. */
export interface ExportedTable {
  /** What a line of it is called. */
  kind: string;
  table: string;
  /** Order of the lines: that of an index, so that nothing is sorted. */
  order: string;
  /** Which rows; they are called `r`. */
  where: string;
  /** Columns that refer to rows that are not copied. */
  without?: readonly string[];
}

const ENDED =
  '(SELECT FROM tasks t WHERE t.tenant_id = r.tenant_id AND t.id = r.task_id AND t.active_run_id IS NULL)';
const RUNNING =
  '(SELECT FROM tasks t WHERE t.tenant_id = r.tenant_id AND t.id = r.task_id AND t.active_run_id IS NOT NULL)';

/** In the order in which they are written and read: each behind those that it refers to. */
export const EXPORTED: readonly ExportedTable[] = [
  { kind: 'agent', table: 'agents', order: 'id', where: 'true' },
  { kind: 'agent_version', table: 'agent_versions', order: 'agent_id, version', where: 'true' },
  { kind: 'schedule', table: 'schedules', order: 'id', where: 'true' },
  // Before the tasks, so that the roll-up does not add tasks a second time.
  { kind: 'usage_rollup', table: 'usage_rollups', order: 'tenant_id', where: 'true' },
  {
    kind: 'task',
    table: 'tasks',
    order: 'id',
    where: 'r.active_run_id IS NULL',
    without: ['push_configs'],
  },
  { kind: 'message', table: 'task_messages', order: 'task_id, sequence', where: `EXISTS ${ENDED}` },
  { kind: 'event', table: 'task_events', order: 'task_id, sequence', where: `EXISTS ${ENDED}` },
  {
    kind: 'artifact_start',
    table: 'artifact_starts',
    order: 'task_id, artifact, sequence',
    where: `EXISTS ${ENDED}`,
  },
  { kind: 'run', table: 'runs', order: 'id', where: `EXISTS ${ENDED}` },
  { kind: 'journal_entry', table: 'turn_journal', order: 'task_id, position', where: `EXISTS ${ENDED}` },
  { kind: 'console_line', table: 'console_lines', order: 'task_id, position', where: `EXISTS ${ENDED}` },
  { kind: 'call_record', table: 'call_records', order: 'task_id, position', where: `EXISTS ${ENDED}` },
  {
    kind: 'context_value',
    table: 'context_state',
    order: 'context_key, agent_id, owner, key',
    where: 'true',
  },
  { kind: 'alias', table: 'task_aliases', order: 'profile, client_key', where: `NOT EXISTS ${RUNNING}` },
  { kind: 'message_key', table: 'message_keys', order: 'key', where: `NOT EXISTS ${RUNNING}` },
  { kind: 'tombstone', table: 'task_tombstones', order: 'task_id', where: 'true' },
  { kind: 'dead_letter', table: 'dead_letters', order: 'run_id', where: `NOT EXISTS ${RUNNING}` },
  { kind: 'usage_of_day', table: 'token_usage', order: 'day', where: 'true' },
  { kind: 'usage_of_hour', table: 'usage_hours', order: 'hour, agent_id, owner, model', where: 'true' },
];

/** Tables whose rows stay, and why. A test asks for a reason for each table of tenants that is not in `EXPORTED`. */
export const STAYS: Readonly<Record<string, string>> = {
  api_tokens: 'credentials: make new ones',
  audit_records: 'says what happened in the installation where it happened',
  bulk_operations: 'what is done, and was done, in this installation',
  hosts: 'a host name leads to one installation',
  issuer_users: 'of issuers',
  issuers: 'who may sign in is decided where the tenant is',
  oauth_clients: 'registered for the public URL of this installation',
  oauth_connections: 'credentials: sign in again',
  oauth_sign_ins: 'links of this installation that people have opened',
  push_configs: 'secrets, and where they may be sent; the tasks have ended',
  push_receivers: 'what has been tried from the installation where it was tried',
  secrets: 'secret values: the header has their names',
  spending_allowances: 'of spending caps',
  spending_caps: 'what may be spent is decided where the tenant is',
  spending_charges: 'of spending caps',
  spending_counts: 'of spending caps',
  stream_counts: 'counters of the moment',
  tenant_usage: 'counted again',
  token_reservations: 'of calls that are being made',
  webhooks: 'secrets, and receivers that know this installation: make new ones',
};

export interface BackupColumn {
  name: string;
  type: string;
  isRequired: boolean;
}

const COLUMNS = `
SELECT a.attname::text AS name, format_type(a.atttypid, a.atttypmod) AS type, a.attnotnull AS "isRequired"
FROM pg_attribute a
WHERE a.attrelid = to_regclass($1) AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''
  AND a.attname <> 'tenant_id'
ORDER BY a.attnum`;

/** Columns of a table, without the tenant's. */
export const columnsOf = (session: BackupSession, table: string): Promise<BackupColumn[]> =>
  session.query<BackupColumn>(COLUMNS, [escapeIdentifier(table)]);
