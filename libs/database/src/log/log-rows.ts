import { type EventPayload, StreamResponse } from '@baton/a2a';
import { keyOfTenant } from '../connection/row-security.js';
import type { Statement } from '../connection/database.js';

// The rows of a task's log hold less than what readers get, because each byte is also written to the WAL of Postgres:
// - Neighbouring events may share a row. Its payload is then a JSON array, `sequence` that of the last one.
// - An event may leave out the ids of its task and context: every event of the log has the same.
// - The first event may have no row: message 1 stands for it, and `accepted_at` is the time of its status.
// Rows of earlier releases have one event each, whole. Readers take both.

/** Fields that every event of a log repeats from its task. */
export interface TaskIds {
  taskId: string;
  contextId: string;
}

/** An event of a log as `READ_EVENTS` and `READ_PAGE` select it. */
export interface EventRow {
  sequence: number;
  attempt: number;
  /** Null: the task was deleted. */
  context_id: string | null;
  /** The stored text, or message 1 if the message stands for the event. */
  json: string;
  /** Set if message 1 stands for the event. */
  accepted_at: Date | null;
}

export interface PageRow extends EventRow {
  /** Events of the rows up to here, those included that the page leaves out. */
  number: number;
  /** Bytes of the rows up to here. */
  bytes: number;
}

/** The kinds of events that name their task, and how their text begins. */
const KINDS = ['{"statusUpdate":{', '{"artifactUpdate":{'] as const;

const idsText = ({ taskId, contextId }: TaskIds): string =>
  `"taskId":${JSON.stringify(taskId)},"contextId":${JSON.stringify(contextId)},`;

/** Events that belong to no artifact. */
const NO_ARTIFACT = '0';
/** Maximum size of the events that share a row. Postgres compresses larger values, which costs more than another row. */
const MAX_ROW_BYTES = 1_900;

/** A row as it is written. */
export interface NewLogRow {
  json: string;
  bytes: number;
  /** Positions of its first and last event in the batch, from 1. First unset: it has one event. */
  first: number | undefined;
  last: number;
  artifact: string;
}

/**
 * The rows of a batch.
 * @param ids of the task; unset: events keep those that they have
 */
export function logRows(
  events: readonly { json: string; artifact: string | undefined }[],
  ids: TaskIds | undefined,
): NewLogRow[] {
  const rows: { texts: string[]; bytes: number; last: number; artifact: string }[] = [];
  const named = ids && KINDS.map((kind) => ({ kind, start: kind + idsText(ids) }));
  for (const [i, { json, artifact = NO_ARTIFACT }] of events.entries()) {
    const head = named?.find(({ start }) => json.startsWith(start));
    const text = head ? head.kind + json.slice(head.start.length) : json;
    const bytes = Buffer.byteLength(text) + ','.length;
    const row = rows.at(-1);
    const isAlike = artifact === NO_ARTIFACT || row?.artifact === NO_ARTIFACT || row?.artifact === artifact;
    if (!row || !isAlike || row.bytes + bytes > MAX_ROW_BYTES) {
      rows.push({ texts: [text], bytes, last: i + 1, artifact });
      continue;
    }
    row.texts.push(text);
    row.bytes += bytes;
    row.last = i + 1;
    if (artifact !== NO_ARTIFACT) row.artifact = artifact;
  }
  return rows.map(({ texts: [only = '', ...more], bytes, last, artifact }) => {
    const isOne = more.length === 0;
    return {
      json: isOne ? only : `[${[only, ...more].join()}]`,
      bytes: isOne ? bytes - ','.length : bytes + '['.length,
      first: isOne ? undefined : last - more.length,
      last,
      artifact,
    };
  });
}

/** Whether message 1 can stand for the first event of a task: it says nothing else. */
export const isSaidByMessage = (event: string, ids: TaskIds, message: string, acceptedAt: Date): boolean =>
  event === firstEvent(ids, message, acceptedAt);

/** The first event of a task that says nothing but its message, as `serializePayload` writes it. @param message JSON */
function firstEvent({ taskId, contextId }: TaskIds, message: string, acceptedAt: Date): string {
  const ids = `"id":${JSON.stringify(taskId)},"contextId":${JSON.stringify(contextId)}`;
  const status = `{"state":"TASK_STATE_SUBMITTED","timestamp":"${acceptedAt.toISOString()}"}`;
  return `{"task":{${ids},"status":${status},"history":[${message}]}}`;
}

/**
 * The text of an event as readers get it: as `serializePayload` wrote it.
 * @returns nothing if the task was deleted
 */
export function eventJson(row: EventRow, taskId: string): string | undefined {
  const { json, context_id: contextId, accepted_at: acceptedAt } = row;
  if (contextId === null) return undefined;
  if (acceptedAt) return firstEvent({ taskId, contextId }, json, acceptedAt);
  const kind = KINDS.find((start) => json.startsWith(start));
  if (!kind || json.startsWith('"taskId":', kind.length)) return json;
  return kind + idsText({ taskId, contextId }) + json.slice(kind.length);
}

/** The payloads in a row of a log. They need not have the ids of their task. @param payload of the row, parsed */
export const payloadsOf = (payload: object): EventPayload[] =>
  [payload].flat().map((event) => StreamResponse.fromJSON(event).payload as EventPayload);

/** Payloads of a row that come after one event and up to another. @param json payload of the row @param last its sequence */
export function payloadsWithin(json: string, last: number, after: number, upTo: number): EventPayload[] {
  const payloads = payloadsOf(JSON.parse(json) as object);
  const first = last - payloads.length + 1;
  return payloads.slice(Math.max(after + 1 - first, 0), Math.max(upTo + 1 - first, 0));
}

/** SQL of the sequence of the first event in a row `r`. */
export const firstOf = (r: string): string => `coalesce(${r}.first_sequence, ${r}.sequence)`;

/** SQL of the events in a row `r`, one row each: `n`, from 1, and `payload`. The text of each stays as it is. */
export const eventsIn = (r: string): string =>
  `json_array_elements(CASE WHEN ${r}.first_sequence IS NULL THEN json_build_array(${r}.payload) ELSE ${r}.payload END)
    WITH ORDINALITY AS e(payload, n)`;

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
export const READ_EVENTS: Statement = {
  name: 'task-read-events',
  text: `
SELECT ${firstOf('r')} + e.n::int - 1 AS sequence, r.attempt, e.payload::text AS json, r.accepted_at, ${CONTEXT_ID}
FROM (${FIRST_EVENT} UNION ALL (${rowsAfter('$4')})) r, ${eventsIn('r')}
WHERE ${firstOf('r')} + e.n - 1 > $3 ORDER BY 1 LIMIT $4`,
};

/** $1 tenant $2 task $3 after $4 limit */
export const EVENT_TIMES: Statement = {
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
 * (Postgres knows how large it is compressed, which says little): the page ends with the one that reaches $4 or $5.
 */
export const READ_PAGE: Statement = {
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
