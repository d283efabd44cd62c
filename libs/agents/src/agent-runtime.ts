import {
  type Agent,
  type Artifact,
  type Message,
  type Part,
  type RequestDetails,
  Role,
  type StreamResponse,
  type Task,
  TaskState,
} from '@baton/a2a';
import type { RecordMode } from '@baton/config';
import type { OutboundCalls } from '@baton/outbound';
import { clock, type Span } from '@baton/telemetry';
import type { Redactor } from './outbound/redactor.js';
import type { AccessTokenRequest, SignedInCall, SignInOffer, WiderAccess } from './access-tokens.js';
import type { TaskOrigin } from './task-origin.js';
import type { ConsoleLevel } from './console-level.js';

/** One entry of a journal. */
export interface JournalEntry {
  /** The run that wrote it. A run is one turn of the task. */
  runId: string;
  /** Counts from 1 over all turns of the task, without gaps between the entries that are left. */
  position: number;
  /** Any JSON value. */
  value: unknown;
}

/**
 * The memory of a runtime across crashes and turns: an append-only list of JSON values per task, in Postgres. It is
 * deleted with the task.
 */
export interface TurnJournal {
  /**
   * Reads all entries of a task, of all its turns, oldest first.
   * @param taskId another task of the tenant, such as one of `earlierTasks`. Default: the turn's own task
   */
  read(taskId?: string): Promise<JournalEntry[]>;
  /**
   * The entry is durable when this resolves. Rejects without a write if another attempt has taken over the run.
   * @param record JSON of the record of the model call that the entry is about, without secrets and of bounded size. It is stored with
   * the entry.
   */
  append(value: unknown, record?: string): Promise<void>;
  /**
   * The same in place of all entries of the task: those are deleted. Call it when everything that was yielded is in the log: attempts to
   * come keep it, and replace only what follows.
   */
  restart(value: unknown): Promise<void>;
  /**
   * The task may have a call that a tool server executes as a task of its own, from now on. If the task is canceled while no worker has it, the
   * platform cancels the calls that the journal names. Durable when it resolves. Rejects as `append`.
   */
  noteRemoteCall(): Promise<void>;
  /**
   * The task may have steps to undo, from now on. If the task is canceled, the platform makes another one that undoes them. Durable when it
   * resolves. Rejects as `append`.
   */
  noteCompensable(): Promise<void>;
}

/** The log of a turn's task, for runtimes that replay. */
export interface TurnLog {
  /** Sequence of the last event when the turn was claimed. */
  readonly startedAt: number;
  /** Stores everything that the runtime has yielded. Resolves with the sequence of the last event. */
  flush(): Promise<number>;
  /** The next chunk of this artifact continues the chunks that earlier attempts have stored. */
  keepArtifact(artifactId: string): void;
  /** If the turn ends with a question, the task continues after this time without an answer: as the next attempt of this run. */
  wakeIn(ms: number): void;
}

/** The console of a turn: output of the agent's code, for the author of the agent. */
export interface TurnConsole {
  /**
   * Stores a line, soon and as far as there is room. Never fails.
   * @returns the line without secrets
   */
  write(level: ConsoleLevel, text: string): string;
}

/** The record of one model call, for callers who may read it. */
export interface CallRecord {
  /** Position of the entry of the call in the journal. */
  position: number;
  /** JSON without secrets, of bounded size. */
  json: string;
}

/** The records of the calls that a turn makes of its model. They are kept as well as possible: no method ever fails. */
export interface TurnRecords {
  /** Which calls are recorded for an agent without that setting. */
  readonly byDefault: RecordMode;
  /** Stores a record if the run fails. */
  hold(record: CallRecord): void;
}

/** A write of a value that an agent keeps for a conversation. */
export interface StateWrite {
  key: string;
  /** JSON */
  value: string;
  /** Write only if the key has this version; 0: it has no value. Unset: write in any case. */
  expected?: number;
  /** A UUID of the write. A write that is repeated has the same. */
  writer: string;
}

/** The outcome of a write. `conflict`: the key has another version, and `current` is its value. `full`: the conversation has too many keys. */
export type WrittenState =
  | { outcome: 'written'; version: number }
  | { outcome: 'conflict'; current: { value: string; version: number } | undefined }
  | { outcome: 'full' };

/** Values that an agent keeps for the conversation of a turn: the tasks of the agent, the owner and the context. Values are JSON. */
export interface TurnState {
  /** Undefined: the key has no value. */
  read(key: string): Promise<{ value: string; version: number } | undefined>;
  /** Rejects without a write if another attempt has taken over the run. */
  write(write: StateWrite): Promise<WrittenState>;
}

/** The secrets of the tenant, as a turn uses them. */
export interface TurnSecrets {
  /** Removes the values that the turn has read so far. */
  readonly redactor: Redactor;
  /**
   * A secret of the tenant without white space around it. It must never be shown. Undefined if there is no such secret.
   * Rejects with an Error whose message is for the tenant if one of the destinations may not receive it.
   * @param destinations every origin and program that will receive the value
   */
  get(name: string, destinations: readonly string[]): Promise<string | undefined>;
  /**
   * An access token for a server. It must never be shown. Undefined: there is no sign-in. Rejects with an Error whose message is
   * for the tenant if it cannot be had for now.
   * @param refused the server has refused this one: another one is wanted
   */
  accessToken(request: AccessTokenRequest, refused?: string): Promise<string | undefined>;
  /** Records a call in the audit log before it is sent. @returns false: there is no sign-in, so the call must not be sent */
  noteCall(request: AccessTokenRequest, call: SignedInCall): Promise<boolean>;
  /** The server has refused an access token that is new: the sign-in is over. */
  refuseAccessToken(request: AccessTokenRequest, refused: string): Promise<void>;
  /**
   * The remedy if the server requires more scopes than an access token has. Undefined: there is none, because the last sign-in asked for them.
   * @param asked what the server names
   */
  widerAccess(
    request: AccessTokenRequest,
    refused: string,
    asked: readonly string[],
  ): Promise<WiderAccess | undefined>;
  /**
   * A link with which the caller of the turn signs in. Undefined: it cannot.
   * @param wanted the server, or a child task that waits for the same
   */
  offerSignIn(wanted: AccessTokenRequest | { childTaskId: string }): Promise<SignInOffer | undefined>;
}

/** One turn of a task, as a runtime receives it. */
export interface Turn {
  tenantId: string;
  runId: string;
  /** Counts from 1. A higher number means that an earlier attempt crashed, or was suspended, during this turn. */
  attempt: number;
  agent: Agent;
  /** Whose task it is. A context belongs to one owner. Null: the task has none. */
  owner: string | null;
  /** Run the turn in a process of its own: an earlier attempt may have killed its process with other turns in it. */
  runsAlone?: boolean;
  /** The stored task when the turn was claimed, with its history, which includes the new message. */
  task: Task;
  /** The message to answer. */
  message: Message;
  /** `metadata` and `configuration` of the request, as the caller sent them. */
  details: RequestDetails;
  /** The existing tasks of the tenant that `message.referenceTaskIds` names. */
  referenceTasks: Task[];
  /**
   * Reads the earlier tasks of the same context and agent, oldest first.
   * @param max maximum number of tasks, the latest ones. Default 16, at most 100
   */
  earlierTasks: (max?: number) => Promise<Task[]>;
  /** The journal of this task. */
  journal: TurnJournal;
  state: TurnState;
  /** Set if the task continues the journal of an earlier one, which is copied into its own. */
  origin?: TaskOrigin | undefined;
  log: TurnLog;
  console: TurnConsole;
  records: TurnRecords;
  secrets: TurnSecrets;
  /** The only way to call the addresses that a tenant wrote: it goes where the lists of the tenant allow. */
  outbound: OutboundCalls;
  /** URIs of the extensions that the caller requested. */
  extensions: readonly string[];
  /** The trace of the caller's request (W3C Trace Context). Outbound calls continue it. */
  traceparent: string | undefined;
  /** The span of this attempt. Unset: tracing is off. */
  span?: Span | undefined;
}

/** The output of a runtime: an event, a bare message (the whole reply), or a task whose content is adopted. */
export type AgentOutput = NonNullable<StreamResponse['payload']>;
/** A new artifact, or a piece of one. */
export type ArtifactOutput = Extract<AgentOutput, { $case: 'artifactUpdate' }>;
/** Why a turn was stopped: the value of `signal.reason`. */
export type StopReason = 'canceled' | 'lease-lost' | 'shutdown';

/** The messages before this turn's message. Empty in the first turn of a task. */
export function historyBefore({ task, message }: Pick<Turn, 'task' | 'message'>): Message[] {
  // The last match, because some callers use a messageId twice in a task.
  const index = task.history.findLastIndex(
    ({ messageId, role }) => messageId === message.messageId && role === Role.ROLE_USER,
  );
  return index < 0 ? [] : task.history.slice(0, index);
}

/** The number of this turn in its task, from 1. It depends only on the stored task, so every attempt counts the same. */
export function turnNumber(turn: Turn): number {
  return 1 + historyBefore(turn).filter(({ role }) => role === Role.ROLE_USER).length;
}

/** A text part of an agent's output, with the media type `text/plain`. */
export const plainTextPart = (text: string): Part => ({
  content: { $case: 'text', value: text },
  metadata: undefined,
  filename: '',
  mediaType: 'text/plain',
});

/** A data part of an agent's output with a JSON value, and the media type `application/json`. */
export const jsonPart = (value: unknown): Part => ({
  content: { $case: 'data', value },
  metadata: undefined,
  filename: '',
  mediaType: 'application/json',
});

/** Creates a file part. */
export const filePart = (filename: string, mediaType: string, value: Buffer): Part => ({
  content: { $case: 'raw', value },
  metadata: undefined,
  filename,
  mediaType,
});

/** Creates a status of the turn's task, with an optional message to the caller. */
export function status(turn: Turn, state: TaskState, content?: string | Part[]): AgentOutput {
  const { id: taskId, contextId } = turn.task;
  const parts = typeof content === 'string' ? [plainTextPart(content)] : content;
  const message = parts && statusMessage(turn, parts);
  const timestamp = clock.date().toISOString();
  return {
    $case: 'statusUpdate',
    value: { taskId, contextId, status: { state, message, timestamp }, metadata: undefined },
  };
}

/** Ends the turn successfully. There is no message, because the reply is in the artifacts. */
export const completed = (turn: Turn): AgentOutput => status(turn, TaskState.TASK_STATE_COMPLETED);

/** Ends the turn with a failure and its reason. */
export const failed = (turn: Turn, text: string): AgentOutput =>
  status(turn, TaskState.TASK_STATE_FAILED, text);

/** Ends the turn with a question to the caller. */
export const inputRequired = (turn: Turn, question: string | Part[]): AgentOutput =>
  status(turn, TaskState.TASK_STATE_INPUT_REQUIRED, question);

/** Creates a chunk of an artifact of the turn's task. */
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

/** The message id derives from the run, so every attempt of a turn sends the same message. */
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
