import { isUuid, LoggedEvent, type TaskEvent } from '@baton/a2a';
import type { Database, Statement } from '../connection/database.js';
import { keyOfTenant } from '../connection/row-security.js';
import { eventJson, type EventRow, eventsIn, firstOf } from './log-rows.js';

interface PageRow extends EventRow {
  /** Events of the rows up to here, those included that the page leaves out. */
  number: number;
  /** Bytes of the rows up to here. */
  bytes: number;
}

/** SQL: FROM and WHERE of message 1, if it stands for the first event and $3 is before it. */
const OF_FIRST_EVENT = `FROM task_messages m
  WHERE $3 < 1 AND m.tenant_id = $1 AND m.task_id = $2 AND m.sequence = 1 AND m.accepted_at IS NOT NULL`;
/** SQL of it as a row of the log. */
const FIRST_EVENT = `SELECT 1 AS first_sequence, 1 AS sequence, 0 AS attempt, json_build_array(m.message) AS payload, m.accepted_at
  ${OF_FIRST_EVENT}`;

/** SQL of the next rows of the log after $3. */
const rowsAfter = (
  limit: string,
): string => `SELECT first_sequence, sequence, attempt, payload, NULL::timestamptz AS accepted_at
  FROM task_events WHERE tenant_id = $1 AND task_id = $2 AND sequence > $3 ORDER BY sequence LIMIT ${limit}`;

const CONTEXT_ID = `(SELECT context_id FROM tasks WHERE tenant_id = ${keyOfTenant('$1')} AND id = $2) AS context_id`;

/** $1 tenant $2 task $3 after $4 limit */
const READ_EVENTS: Statement = {
  name: 'task-read-events',
  text: `
SELECT ${firstOf('r')} + e.n::int - 1 AS sequence, r.attempt, e.payload::text AS json, r.accepted_at, ${CONTEXT_ID}
FROM (${FIRST_EVENT} UNION ALL (${rowsAfter('$4')})) r, ${eventsIn('r')}
WHERE ${firstOf('r')} + e.n - 1 > $3 ORDER BY 1 LIMIT $4`,
};

/** $1 tenant $2 task $3 after $4 limit */
const EVENT_TIMES: Statement = {
  name: 'task-event-times',
  text: `
SELECT s.sequence, r.at FROM (
  SELECT 1 AS first, 1 AS last, m.accepted_at AS at ${OF_FIRST_EVENT}
  UNION ALL (
    SELECT ${firstOf('l')}, l.sequence, l.created_at FROM task_events l
    WHERE l.tenant_id = $1 AND l.task_id = $2 AND l.sequence > $3 ORDER BY l.sequence LIMIT $4
  )
) r, generate_series(r.first, r.last) AS s(sequence)
WHERE s.sequence > $3 ORDER BY 1 LIMIT $4`,
};

/**
 * $1 tenant $2 task $3 after $4 limit $5 bytes. Row by row, since how large one is shows only when it is read
 * (Postgres stores only its compressed size): the page ends with the one that reaches $4 or $5.
 */
const READ_PAGE: Statement = {
  name: 'task-read-page',
  text: `
WITH RECURSIVE page AS (
  (SELECT r.*, r.sequence - ${firstOf('r')} + 1 AS number, octet_length(r.payload::text) AS bytes
    FROM (${FIRST_EVENT} UNION ALL (${rowsAfter('1')})) r ORDER BY r.sequence LIMIT 1)
  UNION ALL
  SELECT r.*, NULL::timestamptz, page.number + r.sequence - ${firstOf('r')} + 1, page.bytes + octet_length(r.payload::text)
  FROM page CROSS JOIN LATERAL (
    SELECT first_sequence, sequence, attempt, payload FROM task_events l
    WHERE tenant_id = $1 AND task_id = $2 AND sequence > page.sequence
    ORDER BY sequence LIMIT 1
  ) r
  WHERE page.number < $4 AND page.bytes < $5 AND ${firstOf('r')} = page.sequence + 1
)
SELECT ${firstOf('r')} + e.n::int - 1 AS sequence, r.attempt, e.payload::text AS json, r.accepted_at, r.number, r.bytes, ${CONTEXT_ID}
FROM page r, ${eventsIn('r')}
WHERE ${firstOf('r')} + e.n - 1 > $3 ORDER BY 1`,
};

/** Largest `integer` of Postgres. */
const MAX_INT = 2_147_483_647;

/** For a task that was deleted meanwhile: none. */
const loggedEvents = (rows: readonly EventRow[], taskId: string): LoggedEvent[] =>
  rows.flatMap((row) => {
    const json = eventJson(row, taskId);
    return json === undefined ? [] : [new LoggedEvent(row.sequence, row.attempt, json)];
  });

/** Events after `after`, in order, at most `limit`. */
export async function readEvents(
  database: Database,
  tenantId: string,
  taskId: string,
  after: number,
  limit: number,
): Promise<TaskEvent[]> {
  if (!isUuid(taskId)) return [];
  const values = [tenantId, taskId, Math.min(after, MAX_INT), Math.min(limit, MAX_INT)];
  const rows = await database.tenantQuery<EventRow>(tenantId, READ_EVENTS, values);
  return loggedEvents(rows, taskId).map(({ sequence, attempt, payload }) => ({ sequence, attempt, payload }));
}

/** When the events after `after` were stored, in order, at most `limit`. */
export async function eventTimes(
  database: Database,
  tenantId: string,
  taskId: string,
  after: number,
  limit: number,
): Promise<{ sequence: number; at: Date }[]> {
  if (!isUuid(taskId)) return [];
  const values = [tenantId, taskId, Math.min(after, MAX_INT), limit];
  return database.tenantQuery<{ sequence: number; at: Date }>(tenantId, EVENT_TIMES, values);
}

/**
 * The next events after `after`, in order: no more after `limit` of them or `bytes` of JSON. `more`: whether there may be
 * events after them.
 */
export async function readPage(
  database: Database,
  { tenantId, taskId }: { tenantId: string; taskId: string },
  after: number,
  { limit, bytes }: { limit: number; bytes: number },
): Promise<{ events: LoggedEvent[]; more: boolean }> {
  if (!isUuid(taskId)) return { events: [], more: false };
  const values = [tenantId, taskId, Math.min(after, MAX_INT), limit, bytes];
  const rows = await database.tenantQuery<PageRow>(tenantId, READ_PAGE, values);
  const read = rows.at(-1);
  const more = read !== undefined && (read.number >= limit || read.bytes >= bytes);
  return { events: loggedEvents(rows, taskId), more };
}
