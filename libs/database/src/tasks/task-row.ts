import { clock } from '@baton/telemetry';
import {
  Artifact,
  type EventPayload,
  isInterrupted,
  isTerminal,
  type Message,
  type Task,
  TaskState,
  TaskStatus,
} from '@baton/a2a';
import { estimateOf } from '../connection/json-size.js';
import { contentRows, sizeOfEvent } from '../log/artifact-events.js';
import type { MessageStart } from './first-message.js';
import type { SearchPlace, TurnOutcome } from './task-records.js';

const states = (is: (state: TaskState) => boolean): string =>
  Object.values(TaskState)
    .filter((state): state is TaskState => typeof state === 'number' && is(state))
    .join(', ');

/** The number of every state a task can be in. */
export const ALL_STATES = Object.values(TaskState).filter(
  (state): state is TaskState => typeof state === 'number' && state > TaskState.TASK_STATE_UNSPECIFIED,
);
/** The numbers of the terminal states, for `IN (…)`. */
export const TERMINAL_STATES = states(isTerminal);
/** The numbers of the interrupted states, for `IN (…)`. */
export const INTERRUPTED_STATES = states(isInterrupted);

/** Folded artifacts are kept in the task's row up to this size, in bytes of JSON; larger ones are in the log alone. */
export const INLINE_BYTES = 256 * 1024;
/** Bytes of a history or a log that come with the task's row. Most tasks have fewer. The rest is read in pages. */
const FIRST_BYTES = 64 * 1024;
/** What comes with a row at most: artifacts and the log after them, and the history. In bytes of JSON. */
export const MAX_CONTENT_BYTES = { ofArtifacts: INLINE_BYTES + FIRST_BYTES, ofHistory: FIRST_BYTES };
/** Maximum rows of a history or a log that come with the task's row. */
const FIRST_ROWS = 128;
/** How large a status or metadata may be to come with the row of a single task, or with each row of a list. */
const OWN_BYTES = { single: 16 * 1024 * 1024, list: 64 * 1024 };

/** A task as `taskColumns` selects it; the JSON columns are parsed. */
export interface TaskRow {
  id: string;
  agent_id: string;
  owner: string | null;
  /** In lists only. */
  created_at?: Date;
  /** In lists that ask for it: how the first message begins. */
  first_message?: MessageStart | null;
  /** In such lists, of a task that has failed: the message of the last error in its agent's code. */
  last_error?: string | null;
  parked?: unknown;
  /** In a search: where it has the text, and the text around it. */
  hit_place?: SearchPlace;
  hit_text?: string | null;
  context_id: string;
  state: TaskState;
  status_at: Date;
  /** State and time may be left out. Null = too large. */
  status: object | null;
  metadata: object | null;
  /** There are metadata, and they are too large. */
  metadata_cut: boolean;
  last_sequence: number;
  outcome: TurnOutcome | null;
  /** Bytes of its messages and events. */
  size: number;
  history: HistoryStart;
  /** Folded up to `artifacts_sequence`; null = too large, or not asked for. */
  artifacts: object[] | null;
  artifacts_bytes: number;
  artifacts_sequence: number;
  /** Artifacts were replaced after that. */
  replaced: boolean;
  /** The artifact events after that; null = not asked for. */
  tail: TailStart | null;
}

/** The newest messages of a history, oldest first. */
interface HistoryStart {
  messages: object[];
  /** Sequence of the first of them. */
  from: number | null;
  bytes: number | null;
  /** Messages that were looked at, those included that were too large. */
  rows: number;
}

/** The next events of a log that its artifacts are made of. */
interface TailStart {
  /** The payloads of its rows, see `payloadsOf`. */
  events: object[];
  /** Sequence of the last of them. */
  to: number | null;
  bytes: number | null;
  /** Rows that were looked at, those included that were too large. */
  rows: number;
}

/** Whether there is more of a history or a log than what came with the task's row. */
export const isPartial = ({ rows }: { rows: number }, taken: number): boolean =>
  rows > taken || rows === FIRST_ROWS;

/** SQL: whether a column of `t` is so small. It is not read where that is plain without. */
const isWithin = (column: string, bytes: number): string =>
  `CASE WHEN pg_column_size(t.${column}) > ${bytes} THEN false ELSE octet_length(t.${column}::text) <= ${bytes} END`;

const smallColumn = (column: string, bytes: number): string =>
  `CASE WHEN ${isWithin(column, bytes)} THEN t.${column} END AS ${column}`;

/** SQL of the metadata of `t`, unless they are too large, and of whether they are. */
const metadataOf = (bytes: number): string => `${smallColumn('metadata', bytes)},
  t.metadata IS NOT NULL AND NOT (${isWithin('metadata', bytes)}) AS metadata_cut`;
/** They, of a single task. */
export const metadataColumns = metadataOf(OWN_BYTES.single);

/** A piece of a task's content: its first rows, as far as they fit into FIRST_BYTES. */
interface Piece {
  /** SQL of its rows, with a sequence. */
  rows: string;
  /** Column of JSON. */
  content: string;
  /** SQL of about how large the content of a row `p` is, and of how large it is. */
  estimate: string;
  size: string;
  /** From the oldest row, or from the newest. */
  order: 'ASC' | 'DESC';
  /** Members of its object: the content, and the sequence of the last row that fits. */
  members: { rows: string; last: string };
}

/** SQL of a piece as one JSON object. What does not fit is not even read. */
function pieceOf({ rows, content, estimate, size, order, members }: Piece): string {
  const running = (what: string): string => `sum(${what}) OVER (ORDER BY p.sequence ${order})`;
  const fits = `FILTER (WHERE f.size <= ${FIRST_BYTES})`;
  return `(SELECT json_build_object(
    '${members.rows}', coalesce(json_agg(f.${content} ORDER BY f.sequence) ${fits}, '[]'),
    '${members.last}', ${order === 'ASC' ? 'max' : 'min'}(f.sequence) ${fits}, 'bytes', max(f.size) ${fits}, 'rows', count(*))
   FROM (
     SELECT p.sequence, p.${content}, ${running(`CASE WHEN p.about <= ${FIRST_BYTES} THEN ${size} ELSE ${FIRST_BYTES + 1} END`)} AS size
     FROM (SELECT p.*, ${running(estimate)} AS about FROM (${rows}) p) p
   ) f)`;
}

/** SQL of the beginning of the log after the folded artifacts. */
const TAIL = pieceOf({
  rows: contentRows({
    tenant_id: 't.tenant_id',
    task_id: 't.id',
    after: 't.artifacts_sequence',
    head: 't.last_sequence',
    rows: FIRST_ROWS.toString(),
  }),
  content: 'payload',
  estimate: sizeOfEvent('p'),
  size: 'coalesce(p.bytes, octet_length(p.payload::text))',
  order: 'ASC',
  members: { rows: 'events', last: 'to' },
});

const ARTIFACTS = `${smallColumn('artifacts', INLINE_BYTES)},
  CASE WHEN pg_column_size(t.artifacts) <= ${INLINE_BYTES} THEN octet_length(t.artifacts::text) ELSE 0 END AS artifacts_bytes,
  t.artifacts_sequence < t.last_sequence AND EXISTS (SELECT FROM artifact_starts a
    WHERE a.tenant_id = t.tenant_id AND a.task_id = t.id
      AND a.sequence > t.artifacts_sequence AND a.sequence <= t.last_sequence) AS replaced,
  ${TAIL} AS tail`;
const NO_ARTIFACTS = 'NULL AS artifacts, 0 AS artifacts_bytes, false AS replaced, NULL AS tail';

/** SQL of the newest messages of the history. @param length SQL of their number; NULL = all */
const historyOf = (length: string): string =>
  pieceOf({
    rows: `SELECT sequence, message FROM task_messages
      WHERE tenant_id = t.tenant_id AND task_id = t.id ORDER BY sequence DESC LIMIT least(${length}, ${FIRST_ROWS})`,
    content: 'message',
    estimate: estimateOf('p.message'),
    size: 'octet_length(p.message::text)',
    order: 'DESC',
    members: { rows: 'messages', last: 'from' },
  });

/**
 * The columns of a TaskRow for a task `t`. They are small, however large the task is: of its history and of the log
 * after its folded artifacts they hold the beginning, as of the same moment as its status. `TaskReader` reads the rest.
 * @param historyLength SQL of the number of messages; NULL = all
 */
export function taskColumns(
  historyLength: string,
  artifacts: boolean,
  rows: keyof typeof OWN_BYTES = 'single',
): string {
  const own = OWN_BYTES[rows];
  return `
  t.id, t.agent_id, t.owner, t.context_id, t.state, t.status_at, t.last_sequence, t.outcome, t.artifacts_sequence,
  ${smallColumn('status', own)}, ${metadataOf(own)},
  (t.stored_bytes + CASE WHEN t.active_run_id IS NULL THEN 0 ELSE t.open_bytes END)::float8 AS size,
  ${historyOf(historyLength)} AS history, ${artifacts ? ARTIFACTS : NO_ARTIFACTS}`;
}

/** ProtoJSON text of artifacts, as stored. */
export const artifactsJson = (artifacts: Task['artifacts']): string =>
  JSON.stringify(artifacts.map((artifact) => Artifact.toJSON(artifact)));

/** A status in the forms that a statement and an event need. */
export interface NewStatus {
  status: TaskStatus;
  json: string;
  at: Date;
}

/** JSON of a status as the row of its task has it: nothing, if it has only the state and the time `at` (ISO 8601). */
export const statusJson = (status: TaskStatus, at: string): string =>
  status.message || status.timestamp !== at ? JSON.stringify(TaskStatus.toJSON(status)) : '{}';

/** A status of this moment. */
export function statusNow(state: TaskState, message?: Message): NewStatus {
  const at = clock.date();
  const status: TaskStatus = { state, message, timestamp: at.toISOString() };
  return { status, json: JSON.stringify(TaskStatus.toJSON(status)), at };
}

/** The payload of an event that has this status alone. */
export const statusEvent = (taskId: string, contextId: string, status: TaskStatus): EventPayload => ({
  $case: 'statusUpdate',
  value: { taskId, contextId, status, metadata: undefined },
});
