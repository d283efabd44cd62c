import {
  type Message,
  type Part,
  StreamResponse,
  type Task,
  TaskState,
  taskStateToJSON,
  type JsonObject,
} from './model.js';
import type { EventPayload } from './artifact-fold.js';

const TERMINAL: ReadonlySet<TaskState> = new Set([
  TaskState.TASK_STATE_COMPLETED,
  TaskState.TASK_STATE_FAILED,
  TaskState.TASK_STATE_CANCELED,
  TaskState.TASK_STATE_REJECTED,
]);
const INTERRUPTED: ReadonlySet<TaskState> = new Set([
  TaskState.TASK_STATE_INPUT_REQUIRED,
  TaskState.TASK_STATE_AUTH_REQUIRED,
]);

/** Terminal states are final: no event follows them and nothing leads out of them (A2A 1.0 §4.1.3). */
export const isTerminal = (state: TaskState): boolean => TERMINAL.has(state);

/** The task waits for its caller (A2A 1.0 §4.1.3). */
export const isInterrupted = (state: TaskState): boolean => INTERRUPTED.has(state);

/** The states that end a turn: a blocking send returns and a stream closes (A2A 1.0 §3.2.2). */
export const endsTurn = (state: TaskState): boolean => isTerminal(state) || isInterrupted(state);

/** `TASK_STATE_INPUT_REQUIRED` is `input-required`. */
export const stateName = (state: TaskState): string =>
  taskStateToJSON(state).replace('TASK_STATE_', '').toLowerCase().replaceAll('_', '-');

const STATES: ReadonlyMap<string, TaskState> = new Map(
  Object.values(TaskState)
    .filter((state): state is TaskState => Number(state) > 0)
    .map((state) => [stateName(state), state]),
);

/** The names of all states. */
export const STATE_NAMES: readonly string[] = [...STATES.keys()];

/** The state of that name; undefined if there is none. */
export const stateNamed = (name: string): TaskState | undefined => STATES.get(name);

/** The part of a history a caller asked for: unset = all, 0 = none, n = the last n (A2A 1.0 §3.2.4). */
export const historyTail = (history: readonly Message[], historyLength: number | undefined): Message[] =>
  historyLength === undefined ? [...history] : history.slice(Math.max(0, history.length - historyLength));

/** The key of a task's metadata under which an answer lists what it leaves out. It is never stored. */
export const TRUNCATED = 'baton.truncated';

/** What an answer leaves out of a task, because it would be larger than one answer may be. */
export interface Truncation {
  /** The artifacts are as they were after this event of the log; 0 = none are shown. */
  artifactsUpToEvent?: number;
  /** Only this many of the newest messages are shown. */
  historyMessages?: number;
  /** The message of the status is left out. */
  statusMessage?: true;
  /** The task's own metadata are left out. */
  metadata?: true;
}

/** How much there is of the task. */
export interface TaskSize {
  /** In its log. */
  events: number;
  /** Bytes of its messages and events, as JSON. */
  bytes: number;
}

/** The task with a note in its metadata of what is missing and how to read it; unchanged if nothing is. */
export function markTruncated(task: Task, truncation: Truncation, size: TaskSize): Task {
  if (Object.keys(truncation).length === 0) return task;
  const { artifactsUpToEvent } = truncation;
  const remedy =
    artifactsUpToEvent === undefined
      ? 'Ask for fewer tasks or a shorter history at once, or read the events of the task from the beginning: GET /v1/tasks/{id}/events.'
      : `Read all artifacts page by page: GET /v1/tasks/{id}/artifacts . Or add the events that follow to the artifacts shown: subscribe to the task with the header Last-Event-ID: ${artifactsUpToEvent} , or GET /v1/tasks/{id}/events?since_seq=${artifactsUpToEvent} .`;
  return { ...task, metadata: { ...task.metadata, [TRUNCATED]: { ...truncation, ...size, remedy } } };
}

/** Whether an answer has left something out of this task. */
export const isTruncated = ({ metadata }: Pick<Task, 'metadata'>): boolean =>
  metadata !== undefined && TRUNCATED in metadata;

/** Metadata without that note, as it may be stored: agents hand back what they were given. */
export function withoutTruncation(metadata: Record<string, unknown>): Record<string, unknown> {
  if (!(TRUNCATED in metadata)) return metadata;
  const { [TRUNCATED]: _note, ...rest } = metadata;
  return rest;
}

/** Metadata that callers and agents have written, without the keys that the platform alone writes: `baton.…`. */
export function withoutReserved(
  metadata: JsonObject | undefined,
  kept: readonly string[] = [],
): JsonObject | undefined {
  const isReserved = (key: string): boolean => key.startsWith('baton.') && !kept.includes(key);
  if (!metadata || !Object.keys(metadata).some(isReserved)) return metadata;
  const own = Object.entries(metadata).filter(([key]) => !isReserved(key));
  return own.length > 0 ? Object.fromEntries(own) : undefined;
}

/** `withoutReserved` for the metadata of each part. */
export const partsWithoutReserved = (parts: readonly Part[]): Part[] =>
  parts.map((part) => (part.metadata ? { ...part, metadata: withoutReserved(part.metadata) } : part));

/** A task as it was right after the event `sequence`. Only later events may follow it on a stream. */
export interface TaskSnapshot {
  task: Task;
  sequence: number;
}

/** The stored and published form of a payload: A2A 1.0 ProtoJSON of a StreamResponse, as text. */
export const serializePayload = (payload: EventPayload): string =>
  JSON.stringify(StreamResponse.toJSON({ payload }));
