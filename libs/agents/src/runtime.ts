import {
  type Agent,
  type Artifact,
  type Message,
  type Part,
  Role,
  type StreamResponse,
  type Task,
  TaskState,
} from '@baton/a2a';

/** One value of a journal. */
export interface JournalEntry {
  /** The run that wrote it: one turn of the task. */
  runId: string;
  /** From 1, without holes, over all turns of the task. */
  position: number;
  /** Any JSON value. */
  value: unknown;
}

/**
 * What a runtime must remember across a crash of its worker and from turn to turn: a list of JSON values per task,
 * in Postgres, that only grows. It goes when the task is deleted.
 */
export interface TurnJournal {
  /**
   * Every entry of a task, of all its turns, oldest first.
   * @param taskId another task of the tenant, as one of `earlierTasks`; left out = the turn's own
   */
  read(taskId?: string): Promise<JournalEntry[]>;
  /** Durable when it resolves. Rejects if another attempt owns the run; nothing was written then. */
  append(value: unknown): Promise<void>;
}

/** One turn of a task, as a runtime gets it. */
export interface Turn {
  tenantId: string;
  runId: string;
  /** 1 for the first try; a higher number means that an earlier worker died in the middle of this turn. */
  attempt: number;
  agent: Agent;
  /** An earlier attempt may have killed its process, and others with it: this one should be alone in its own. */
  runsAlone?: boolean;
  /** The task as stored when the turn was claimed, with its history (the new message included). */
  task: Task;
  /** The message to answer. */
  message: Message;
  /** The tasks that `message.referenceTaskIds` names, as far as they exist in the tenant. */
  referenceTasks: Task[];
  /**
   * The earlier tasks of the same context and agent, oldest first: the conversation so far. Read when asked for; the
   * latest 16 unless more are wanted, at most 100.
   */
  earlierTasks: (most?: number) => Promise<Task[]>;
  /** What the runtime wants to remember of this task. */
  journal: TurnJournal;
  /** Extension URIs the caller asked for. */
  extensions: readonly string[];
  /** The trace of the caller's request (W3C Trace Context), to be continued in calls. */
  traceparent: string | undefined;
}

/** What a runtime may say: an event, a bare message (the whole reply), or a task to be taken over. */
export type AgentOutput = NonNullable<StreamResponse['payload']>;

/**
 * How a kind of agent is executed. `run` yields what the agent says, in order, and returns when the turn is
 * over. A turn ends with a status that is terminal or interrupted, or with a bare message. When `signal`
 * aborts (cancel, lost lease, shutdown) it must stop soon; what it yields afterwards is discarded.
 * A thrown error fails the task, unless it is a `Suspension`.
 */
export interface AgentRuntime {
  /** As definitions call it; what their `config` may hold stands in RUNTIME_CONFIGS. */
  readonly name: string;
  run(turn: Turn, signal: AbortSignal): AsyncIterable<AgentOutput>;
}

/** Why a turn's signal was aborted; the value of `signal.reason`. */
export type StopReason = 'canceled' | 'lease-lost' | 'shutdown';

/**
 * Thrown by a runtime whose turn can only go on when other tasks have ended theirs (or have asked for input). Until
 * then the run holds neither a worker nor a slot; then it runs again, as the next attempt.
 */
export class Suspension extends Error {
  override readonly name = 'Suspension';

  constructor(readonly taskIds: readonly [string, ...string[]]) {
    super('The turn waits for other tasks');
  }
}

/** What was said before this turn's message: empty in a task's first turn. */
export function historyBefore({ task, message }: Turn): Message[] {
  // The last one, because some callers use a messageId twice in a task.
  const index = task.history.findLastIndex(
    ({ messageId, role }) => messageId === message.messageId && role === Role.ROLE_USER,
  );
  return index < 0 ? [] : task.history.slice(0, index);
}

/**
 * Which turn of its task this is, from 1. It comes from the stored task alone, so that any worker and any
 * attempt counts the same.
 */
export function turnNumber(turn: Turn): number {
  return 1 + historyBefore(turn).filter(({ role }) => role === Role.ROLE_USER).length;
}

/** A part that holds text. */
export const textPart = (text: string): Part => ({
  content: { $case: 'text', value: text },
  metadata: undefined,
  filename: '',
  mediaType: 'text/plain',
});

/** A part that holds a JSON value. */
export const dataPart = (value: unknown): Part => ({
  content: { $case: 'data', value },
  metadata: undefined,
  filename: '',
  mediaType: 'application/json',
});

/** A part that is a file. */
export const filePart = (filename: string, mediaType: string, value: Buffer): Part => ({
  content: { $case: 'raw', value },
  metadata: undefined,
  filename,
  mediaType,
});

/** A status of the turn's task, with a text or parts for the caller if there is something to say. */
export function status(turn: Turn, state: TaskState, said?: string | Part[]): AgentOutput {
  const { id: taskId, contextId } = turn.task;
  const parts = typeof said === 'string' ? [textPart(said)] : said;
  const message = parts && statusMessage(turn, parts);
  const timestamp = new Date().toISOString();
  return {
    $case: 'statusUpdate',
    value: { taskId, contextId, status: { state, message, timestamp }, metadata: undefined },
  };
}

/** The turn's end when the reply is in its artifacts: no message, so that nothing is said twice. */
export const completed = (turn: Turn): AgentOutput => status(turn, TaskState.TASK_STATE_COMPLETED);

/** The turn's end when the agent can't do what it was asked. */
export const failed = (turn: Turn, text: string): AgentOutput =>
  status(turn, TaskState.TASK_STATE_FAILED, text);

/** The turn's end when the agent needs an answer before it can go on. */
export const inputRequired = (turn: Turn, question: string | Part[]): AgentOutput =>
  status(turn, TaskState.TASK_STATE_INPUT_REQUIRED, question);

/** One chunk of an artifact of the turn's task. */
export function artifactChunk(
  turn: Turn,
  artifact: { artifactId: string; name: string; parts: Part[]; metadata?: Artifact['metadata'] },
  { append = false, lastChunk = true } = {},
): AgentOutput {
  const { id: taskId, contextId } = turn.task;
  return {
    $case: 'artifactUpdate',
    value: {
      taskId,
      contextId,
      artifact: { metadata: undefined, ...artifact, description: '', extensions: [] },
      append,
      lastChunk,
      metadata: undefined,
    },
  };
}

/** The id comes from the run, so that another attempt of the same turn says the same message. */
function statusMessage(turn: Turn, parts: Part[]): Message {
  return {
    messageId: `${turn.runId}-status`,
    contextId: turn.task.contextId,
    taskId: turn.task.id,
    role: Role.ROLE_AGENT,
    parts,
    metadata: undefined,
    extensions: [],
    referenceTaskIds: [],
  };
}
