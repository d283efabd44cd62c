import {
  Artifact,
  ArtifactFold,
  type EventPayload,
  type Message,
  StreamResponse,
  Task,
  TaskState,
  TaskStatus,
  isInterrupted,
  isTerminal,
} from '@baton/a2a';
import type { StoredTask, TurnOutcome } from './records.js';

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

/** A task as `taskColumns` selects it; the JSON columns are parsed. */
export interface TaskRow {
  id: string;
  agent_id: string;
  context_id: string;
  status: object;
  metadata: object | null;
  last_sequence: number;
  outcome: TurnOutcome | null;
  /** Oldest first; null = none. */
  history: object[] | null;
  /** Folded up to some sequence; null = not asked for. */
  artifacts: object[] | null;
  /** The events after that sequence; null = none. */
  tail: object[] | null;
}

/**
 * The columns of a TaskRow for a task `t`. History and the events after the folded artifacts are read by the
 * same statement, so a status never comes with an older prefix of the log.
 * @param historyLength SQL of the number of messages; NULL = all
 */
export const taskColumns = (historyLength: string, artifacts: boolean): string => `
  t.id, t.agent_id, t.context_id, t.status, t.metadata, t.last_sequence, t.outcome,
  (SELECT json_agg(m.message ORDER BY m.sequence) FROM (
     SELECT sequence, message FROM task_messages
     WHERE tenant_id = t.tenant_id AND task_id = t.id ORDER BY sequence DESC LIMIT ${historyLength}
   ) m) AS history,
  ${
    artifacts
      ? `t.artifacts,
  (SELECT json_agg(e.payload ORDER BY e.sequence) FROM task_events e
   WHERE e.tenant_id = t.tenant_id AND e.task_id = t.id AND e.sequence > t.artifacts_sequence) AS tail`
      : 'NULL AS artifacts, NULL AS tail'
  }`;

/** The task a row stands for, its artifacts folded to the head of the log. */
export function storedTask(row: TaskRow): StoredTask {
  const task = Task.fromJSON({
    id: row.id,
    contextId: row.context_id,
    status: row.status,
    artifacts: row.artifacts ?? [],
    history: row.history ?? [],
    metadata: row.metadata ?? undefined,
  });
  if (row.tail) task.artifacts = foldTail(task.artifacts, row.tail);
  return { task, sequence: row.last_sequence, agentId: row.agent_id, outcome: row.outcome };
}

function foldTail(artifacts: Task['artifacts'], tail: object[]): Task['artifacts'] {
  const fold = new ArtifactFold(artifacts);
  for (const event of tail) fold.apply(payloadOf(event));
  return fold.artifacts();
}

/** The payload of a parsed log entry. */
function payloadOf(event: object): EventPayload {
  return StreamResponse.fromJSON(event).payload as EventPayload;
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

/** A status of this moment. */
export function statusNow(state: TaskState, message?: Message): NewStatus {
  const at = new Date();
  const status: TaskStatus = { state, message, timestamp: at.toISOString() };
  return { status, json: JSON.stringify(TaskStatus.toJSON(status)), at };
}

/** SQL of a status event's payload; contextId is known to the task `t` only. */
export const statusEventSql = (status: string): string =>
  `json_build_object('statusUpdate', json_build_object('taskId', t.id, 'contextId', t.context_id, 'status', ${status}::json))`;

/** The payload that `statusEventSql` writes. */
export const statusEvent = (taskId: string, contextId: string, status: TaskStatus): EventPayload => ({
  $case: 'statusUpdate',
  value: { taskId, contextId, status, metadata: undefined },
});
