import { type EventPayload, StreamResponse } from '@baton/a2a';

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

/** An event of a log as the statements of `read-events.ts` select it. */
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

/** Whether message 1 can replace the first event of a task: the event has nothing else. */
export const isSaidByMessage = (event: string, ids: TaskIds, message: string, acceptedAt: Date): boolean =>
  event === firstEvent(ids, message, acceptedAt);

/** The first event of a task that has nothing but its message, as `serializePayload` writes it. @param message JSON */
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
