import type {
  AgentLabel,
  EventPayload,
  Message,
  OwnTasks,
  ReadMemory,
  RequestDetails,
  RunRetry,
  Task,
  TaskSnapshot,
  TaskState,
  Truncation,
} from '@baton/a2a';
import type { NewAuditRecord } from '../audit/audit-records.js';
import type { RunKey } from '../dispatch/run-key.js';
import type { TurnPush } from '../push/push-config.store.js';
import type { ParkedRun } from '../dispatch/parked-run.js';

/** How a turn ended when the last event alone does not say it: `message` = the reply was a bare message. */
export type TurnOutcome = 'message' | 'agent-threw';

/** After which times the webhooks are notified that a task waits for a person, in ms. At least one is set. */
export interface WaitReminders {
  remindMs?: number | undefined;
  escalateMs?: number | undefined;
}

/** A reminder or escalation of a task that waits for a person. */
export interface ReminderStatus {
  kind: 'reminder' | 'escalation';
  /** When webhooks are notified, or tried again that did not accept the notice. Null: it is over. */
  dueAt: Date | null;
  /** When the last webhook has accepted it, or when no webhook had to be notified. Null: that did not happen. */
  sentAt: Date | null;
  /** How many webhooks have taken it. */
  webhooks: number;
}

/** Where a search finds a text. */
export const SEARCH_PLACES = [
  'task_id',
  'context_id',
  'first_message',
  'status_message',
  'error_message',
  'answer',
] as const;
export type SearchPlace = (typeof SEARCH_PLACES)[number];

/** Where a search has found a task. */
export interface SearchHit {
  place: SearchPlace;
  /** The text around it, on one line, in a status, an error or an answer. */
  text?: string;
}

/** A task with the data of the platform that the protocol does not have. */
export interface StoredTask extends TaskSnapshot {
  agentId: string;
  /** Key of the principal that has made it; null = made by an earlier release. */
  owner: string | null;
  /** When it was made. Set in lists only. */
  createdAt?: Date;
  /** How its first message begins, on one line. Set in lists that ask for it, unless the message is too large. */
  firstMessage?: string;
  /** The message of the last error in its agent's code, or its beginning. Set in the same lists, if the task has failed with one. */
  lastError?: string;
  /** Its run waits for other code. Set in the same lists. */
  parked?: ParkedRun;
  /** Set by a search. */
  hit?: SearchHit;
  outcome: TurnOutcome | null;
  /** What is left out because it is too large, as in the task's metadata. Unset: nothing. */
  truncation?: Truncation;
}

/** A new task, its first message and its first run; ids are made by the caller (uuid). */
export interface NewTask {
  tenantId: string;
  agentId: string;
  /** Key of the principal that makes it. Ignored for a child: it has the owner of its parent. */
  owner?: string | null;
  /** The version of its agent with which it begins, and its label. Unset: the worker notes what it runs. */
  begins?: { label: AgentLabel; version?: number | undefined };
  runId: string;
  /** Submitted, with the user's message as its whole history. Becomes event 1. */
  task: Task;
  /** The request without its message. Unset: nothing. */
  details?: RequestDetails | undefined;
  extensions: readonly string[];
  traceparent?: string;
  /** The id that the caller has chosen for the task. */
  alias?: NewAlias;
  key?: MessageKey;
  /** Unset: the run is enqueued, unless other runs of the tenant wait. */
  quota?: RunQuota;
  /** The retry policy; unset: three attempts without a pause. */
  retry?: RunRetry;
  /** Set if an agent creates the task as a child of its own task. */
  child?: NewChild;
  /** The receiver of its events, from the first one on. */
  push?: TurnPush | undefined;
  /** Bytes of the journal that was copied for it. Unset: none. */
  copiedBytes?: number;
  /**
   * The worker for which the run is claimed at acceptance (eager start), and for how long, unless the run has to wait or the task is large.
   * Without effect on a task with `alias`.
   */
  claimFor?: { workerId: string; leaseMs: number } | undefined;
}

/** The quota of a new run. It waits behind the waiting runs of its tenant, oldest first. */
export interface RunQuota {
  /** It is enqueued if fewer of the tenant's runs are in flight (on the queue or running); null = no limit. */
  maxInFlight: number | null;
  /** It is refused if it would have to wait and this many already wait; null = no limit. */
  maxWaiting: number | null;
  /**
   * It may use a reserved slot if no more of the tenant's runs are in flight, itself included. Unset = 1: only a run that is the
   * tenant's only one.
   */
  reserveUpTo?: number;
  /** It is refused if the tenant would store more bytes than this; null or unset = no limit. */
  maxStoredBytes?: number | null;
  /** The first two hold exactly, whatever other processes do at the same time. */
  exact: boolean;
}

/** The key that identifies a repeated message. */
export interface MessageKey {
  /** SHA-256. */
  hash: Buffer;
  /** The key of the message in an earlier release. Unset: it is not looked for. */
  earlierHash?: Buffer;
  /** SHA-256 of the content, if the key does not depend on it. */
  content: Buffer | null;
  /** How long it is known. */
  hours: number;
  /** A deleted task: if the key names it, the key counts as new. */
  goneTaskId?: string;
}

/** The turn of a message with the same key. */
export interface EarlierTurn {
  taskId: string;
  content: Buffer | null;
}

/** An id that a caller has chosen; it names one task per tenant, principal, agent and profile. */
export interface TaskAlias {
  profile: string;
  clientId: string;
}

export interface NewAlias extends TaskAlias {
  /** The task that the id names so far and that is replaced; unset: the id is new. The id belongs to the task's owner. */
  previousTaskId?: string;
}

/** `created: false`: alias or key name another task, which is `taskId`, and nothing was written. */
export interface CreatedTask extends EarlierTurn {
  created: boolean;
  /** The run must be enqueued now, or is claimed; else it waits for a slot. */
  dispatched: boolean;
  /** The run is claimed: its worker must be notified now, with this JSON (`eagerRunFrom`). Undefined: it is not. */
  claimed: string | undefined;
  /** No other run of the tenant is in flight (`RunToEnqueue`). */
  mayUseReserved: boolean;
}

/** The next turn of an interrupted task. */
export interface NextTurn {
  tenantId: string;
  agentId: string;
  taskId: string;
  runId: string;
  message: Message;
  /** The request without its message. Unset: nothing. */
  details?: RequestDetails | undefined;
  extensions: readonly string[];
  traceparent?: string;
  key?: MessageKey;
  quota?: RunQuota;
  retry?: RunRetry;
  /** Key of the principal that sends the message. Unset: an agent sends it. */
  sender?: string;
  /** Written with the turn. */
  record?: NewAuditRecord;
  /** Id of the token that approves with it, which must have the right when the turn is written. */
  approvingToken?: string;
  /** Set if it approves for a user: the id of the entry of its issuer. */
  approvingIssuer?: string;
  /** The receiver of the events of the task, from the first one of this turn on. */
  push?: TurnPush | undefined;
}

/** `late`: the task has continued without an answer. `repeated`: the key names an earlier turn, and nothing was written. */
export type NextTurnResult =
  | { ok: true; sequence: number; dispatched: boolean; mayUseReserved: boolean }
  | { ok: false; reason: 'not-found' | 'terminal' | 'busy' | 'late' }
  | { ok: false; reason: 'repeated'; earlier: EarlierTurn };

/** A claimed run with everything the worker needs to start. */
export interface ClaimedRun extends RunKey {
  agentId: string;
  /** Owner of the task, as in `StoredTask`. */
  owner: string | null;
  /** The task as of the claim, history and folded artifacts included; what is too large is left out (`Truncation`). */
  snapshot: TaskSnapshot;
  /**
   * The artifacts as they were when the turn was accepted, or its present execution began. They differ from the snapshot's when an earlier attempt
   * died in the middle of the turn: what it had sent is to be replaced, what earlier turns left is to be kept.
   */
  artifactsAtStart: Task['artifacts'];
  /** Both they and those of the snapshot are all there are, and whole. */
  artifactsAreWhole: boolean;
  /** Bytes that the task has stored, with the output of dead attempts. */
  logged: LoggedSize;
  /** The message this turn answers. */
  message: Message;
  /** The other members of its request. */
  details: RequestDetails;
  /** Sequence of the event with which this turn was accepted. */
  startSequence: number;
  /** Sequence of the last event before the present execution of the turn: output of attempts after it is replaced. */
  baseSequence: number;
  extensions: string[];
  traceparent: string | null;
  /** The task whose agent waits, or has waited, for this one. */
  parentTaskId: string | null;
  /** Push configs wait for the events of the task. */
  hasPushConfigs: boolean;
  /** An earlier attempt died in a process with other runs: this one gets its own process. */
  runsAlone: boolean;
  /** Since the run was made. */
  waitedSeconds: number;
  /**
   * The `working` event with which it begins; null: the task was already working. For a run that was claimed at acceptance (eager
   * start), the writer appends it with the first events of the agent.
   */
  workingEvent: { sequence: number; payload: EventPayload; isAppended: boolean } | null;
}

/** How much a task has stored: events of its log, and bytes of its messages and events as JSON. */
export interface LoggedSize {
  events: number;
  bytes: number;
}

/** One event to append. Its sequence is assigned in the transaction. */
export interface NewEvent {
  payload: EventPayload;
  /** `serializePayload(payload)`, made once for the log and the channel. */
  json: string;
  /** Its artifact is new, so the event replaces nothing. */
  isFirst?: boolean;
}

/** Changes of the task besides the events of the batch. */
export interface AppendBatch {
  /**
   * Head of the log that the writer expects; the batch is refused if there are later events. It makes a retry
   * after a lost connection safe: the batch cannot be written twice.
   */
  afterSequence: number;
  events: readonly NewEvent[];
  /** Context of the task. Set: the log leaves out the ids of task and context where an event has just these. */
  contextId?: string;
  /** Set when the batch ends the turn: the run is finished in the same transaction. */
  end?: {
    state: TaskState;
    outcome: TurnOutcome | null;
    /** Plain reason kept on the run when it failed. */
    error?: string;
    /**
     * All artifacts as folded up to and including this batch; stored while they are small, so that reads need not
     * fold the log. Unset: they are large.
     */
    artifacts?: Task['artifacts'] | undefined;
    /** For a turn that ends with a question: the task continues after this time without an answer. Unset: it waits for the answer alone. */
    wakeInMs?: number | undefined;
    /** When the webhooks are notified that the task waits. Unset: never. */
    reminders?: WaitReminders | undefined;
  };
  /** Keys merged into the task's metadata. */
  metadata?: Record<string, unknown>;
}

/** `refused`: the task is terminal, or another attempt owns it. Nothing was written. */
export type AppendResult =
  | {
      ok: true;
      firstSequence: number;
      /** Whether the task has ever had a child; set at the end of the turn. */
      hasChildren?: boolean;
      /** Push configs of the task are due now. */
      hasPushConfigs?: boolean;
    }
  | { ok: false };

export type CancelResult = CanceledTask | { ok: false; reason: 'not-found' | 'terminal' };

export interface CanceledTask {
  ok: true;
  /** The beginning of a large task (`Truncation`): the cancel itself reads no more. */
  snapshot: StoredTask;
  event: { sequence: number; payload: EventPayload };
  /** The run that was active. */
  runId: string | null;
  parentTaskId: string | null;
  hasChildren: boolean;
  /** Push configs of the task are due now. */
  hasPushConfigs: boolean;
}

/** What makes a new task a child of another. */
export interface NewChild {
  /** The run that creates the child. It must own the parent. */
  parent: RunKey;
  /** The root of the tree: the parent, or the parent's parent, and so on. */
  rootTaskId: string;
  /** Maximum number of tasks below the first one. */
  maxTasks: number;
}

/** A task on the path from a child to the root, including the child. */
export interface Ancestor {
  taskId: string;
  agentId: string;
}

/** Parent and children of a task. */
export interface TaskRelations {
  /** As in `StoredTask`. */
  owner: string | null;
  parentTaskId: string | null;
  /** Oldest first. */
  childTaskIds: string[];
  /** Version of the task's agent that its last turn has run; null = it was not begun, or its agent has no versions. */
  agentVersion: number | null;
  /** Events in its log. */
  events: number;
  /** Undefined: there is no such task. */
  createdAt: Date | undefined;
  /** When it continues without an answer; null = it does not ask, or waits for the answer alone. */
  wakesAt: Date | null;
  /** Reminders of its present question, in their order. */
  reminders: ReminderStatus[];
}

/** A task below another one. */
export interface Descendant {
  taskId: string;
  parentTaskId: string;
  agentId: string;
  /** As in `StoredTask`. */
  owner: string | null;
  state: TaskState;
  createdAt: Date;
  /** Time of its status. */
  statusAt: Date;
}

/** For how long a tenant's tasks stay after they have ended; may be a fraction of a day. */
export interface Retention {
  tenantId: string;
  days: number;
}

/** The tombstone of a deleted task. */
export interface Tombstone {
  agentId: string;
  /** As in `StoredTask`. */
  owner: string | null;
  endedAt: Date;
  deletedAt: Date;
  /** How long the tenant's tasks stayed when this one was deleted. */
  retentionDays: number;
}

/** How many rows of each kind were deleted. */
export type DeletedRows = Partial<
  Record<
    | 'tasks'
    | 'events'
    | 'messages'
    | 'runs'
    | 'keys'
    | 'aliases'
    | 'tombstones'
    | 'auditRecords'
    | 'callRecords',
    number
  >
>;

/** ListTasks (A2A 1.0 §3.1.4). */
export interface TaskFilter {
  tenantId: string;
  /** Unset: the tasks of every agent. */
  agentId?: string;
  /** Only tasks of these agents. */
  agentIds?: readonly string[] | undefined;
  /** Only these; unset: the tasks of every principal. */
  own?: OwnTasks | undefined;
  contextId?: string;
  state?: TaskState;
  /** Status not older than this. */
  since?: Date;
  /** Status older than this. */
  until?: Date;
  /** Key of the principal that has made them. */
  owner?: string;
  /** True: only tasks whose run is parked. */
  parked?: boolean;
  pageSize: number;
  /** The last row of the previous page. */
  after?: { statusAt: Date; taskId: string };
  historyLength?: number;
  includeArtifacts: boolean;
  /** True: each task has the beginning of its first message and of its last error. */
  withFirstMessage?: boolean;
  /** True: do not count the total. */
  uncounted?: boolean;
  /** True: a replica may answer (`Database.lists`). */
  mayLag?: boolean;
  /** Grants memory for large tasks; unset = none. */
  memory?: ReadMemory | undefined;
}

/** Why a run has used up its attempts, from the rows of Postgres. */
export interface Crashes {
  /** At least 1. */
  crashCount: number;
  /** Why the agent's process died at the last attempt. Undefined: the worker died with it. */
  lastCrash: string | undefined;
}

/** A run that has used up its attempts. Its task is failed, and its last event is in the log. */
export interface PoisonedRun extends RunKey {
  event: { sequence: number; payload: EventPayload };
}

/** A task that has waited for an answer in vain, and is working again. */
export interface WokenTask {
  tenantId: string;
  taskId: string;
  event: { sequence: number; payload: EventPayload };
  hasPushConfigs: boolean;
}

/** A run that used up its attempts, and its redelivery. */
export interface DeadLetter {
  tenantId: string;
  runId: string;
  taskId: string;
  agentId: string;
  /** Owner of its task; null = made by an earlier release. */
  owner: string | null;
  /** Why its task failed, in plain words. */
  reason: string;
  attempts: number;
  diedAt: Date;
  /** When the task of the last redelivery was made. */
  redeliveredAt: Date | null;
  /** That task; without `redeliveredAt` it is not created yet. */
  redeliveredTaskId: string | null;
}

/** The message of a dead run. */
export interface DeadMessage {
  message: Message;
  details: RequestDetails;
  contextId: string;
  extensions: string[];
}
