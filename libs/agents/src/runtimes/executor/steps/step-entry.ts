import type { DetailsJson } from '@baton/a2a';
import type { JournalEntry } from '../../../agent-runtime.js';
import type { Decision } from '../../../approvals.js';
import type { CapQuestion } from '../../../cap-reached.js';
import type { FailedCall, ModelStep } from '../../llm/llm-entry.js';
import type {
  Compensating,
  OutcomeAnswer,
  OutcomeDecision,
  StepFailure,
  StepKind,
} from '../step-protocol.js';
import type { MadeCall, StoredRemoteCall } from '../turn-tools.js';

/** The members of every entry of the journal. */
export interface EntryHead {
  /**
   * Executions of a task count from 1. An execution is one call of `execute`, with all its later attempts, and with the
   * turns that answer its `waitForInput`. The next one begins with a message that answers nothing, or with `continueAs`.
   */
  execution: number;
  id: number;
  /** ISO 8601 */
  at: string;
  /** Head of the log: all that the code had published before is at or below. -1 = some of it may have been held back. */
  head: number;
}

export interface Begun extends EntryHead {
  event: 'begun';
  name: string;
  nth: number;
  kind: StepKind;
  alone: boolean;
  /** For a sleep, and for a question with a timeout: its end, in ms since 1970. */
  until?: number;
  /** For a call of an agent: its slug. */
  agent?: string;
  /** For a question: the index of the execution's first message in the history of the task. */
  start?: number;
  /** For a question: `metadata` and `configuration` of the request that began the execution. */
  details?: DetailsJson;
  /** What decided to repeat the last try, whose outcome was unknown. */
  decision?: OutcomeDecision;
  /** It can be undone. Releases up to 0.2 do not write it. */
  compensates?: true;
}

export interface Failed extends EntryHead {
  event: 'failed';
  error: StepFailure;
  /** `verified`: the step has not failed, but `verify` of its unknown outcome has. */
  decision?: OutcomeDecision;
  /** When it is tried again, in ms since 1970. */
  until: number;
}

export interface Ended extends EntryHead {
  event: 'ended';
  /** JSON */
  result?: string;
  error?: StepFailure;
  /** For a question: the index of the answer in the history of the task. */
  answer?: number;
  /** For a question: `metadata` and `configuration` of the answer's request. Journals of releases up to 0.2 do not have it. */
  details?: DetailsJson;
  /** What decided that the step has ended, as the outcome of a try was unknown. */
  decision?: OutcomeDecision;
}

/** A person is asked about the unknown outcome of a step. Releases up to 0.2 skip this entry and the next one. */
export interface OutcomeAsked extends EntryHead, Pick<Begun, 'start' | 'details'> {
  event: 'asked';
  /** ISO 8601. For a tool call: from then on it counts as refused. */
  expiresAt?: string;
  /** For a model call: the cap that has no room. */
  cap?: CapQuestion;
  /** The server of a tool asks: ids of its questions, and of those that ask for data. */
  questions?: string[];
  forms?: string[];
  /** The server of a tool requires a sign-in of the caller. A message cannot answer that. */
  signIn?: true;
}

export interface OutcomeAnswered extends EntryHead {
  event: 'answered';
  /** The content of the caller's message. */
  answer: OutcomeAnswer;
  /** The decision about a model or tool call. Unset: the message has none. */
  decision?: Decision;
  /** About the questions of the server of a tool. */
  decisions?: Decision[];
}

/** A tool call that must not be repeated without a person's approval is sent next. */
export interface ToolSent extends EntryHead {
  event: 'sent';
}

/** The server has refused it, because the caller must sign in first. */
export interface ToolUnsent extends EntryHead {
  event: 'unsent';
}

/**
 * The server of a tool executes a call as a task of its own, or asks: as an llm agent has it in its journal. The last entry of a call counts.
 * Releases up to 0.2 skip it.
 */
export interface ToolRemote extends EntryHead, StoredRemoteCall {
  event: 'remote';
  kind: 'remote';
  call: string;
}

/**
 * The code has thrown, or the task continues a canceled task. Its id is 0: it is about no step. Compensations are steps of their
 * own. The last such entry counts.
 */
export interface CompensationBegun extends EntryHead, Compensating {
  event: 'compensating';
}

/**
 * A turn has ended with a question that the task may continue without, or that is one of several. An answer answers the last one of them.
 * Releases up to 0.2 skip this entry.
 */
export interface QuestionPosed extends EntryHead {
  event: 'posed';
}

/** The first entry of an execution that began with `continueAs`. All entries before it were deleted. It is about no step: its id is 0. */
export interface Continued extends EntryHead {
  event: 'continued';
  /** JSON */
  state: string;
  /** The index of the execution's first message in the history of the task. */
  start: number;
  /** `metadata` and `configuration` of the request that began it. */
  details?: DetailsJson;
}

/**
 * A model call was made: an answer or a failure, as an llm agent has it in its journal, so that both are shown in the same way. The
 * step has not ended yet. An answer is not asked for again.
 */
export type ModelCalled = EntryHead & { event: 'called' } & (ModelStep | FailedCall | MadeCall);

/** An entry in the journal of an executor's task. Only the executor runtime writes into it. */
export type StepEntry =
  | Begun
  | Failed
  | Ended
  | OutcomeAsked
  | OutcomeAnswered
  | CompensationBegun
  | QuestionPosed
  | ModelCalled
  | ToolSent
  | ToolUnsent
  | ToolRemote
  | Continued;

type WithoutExecution<T> = T extends unknown ? Omit<T, 'execution' | 'at' | 'head'> : never;

/** An entry about the course of a step. */
export type NewStepEntry = WithoutExecution<
  Exclude<StepEntry, ModelCalled | ToolSent | ToolUnsent | ToolRemote>
>;

/** An entry about a call that is under way. `at` unset: now. */
export type Noted =
  | WithoutTime<ToolSent>
  | WithoutTime<ToolUnsent>
  | WithoutTime<ToolRemote>
  | WithoutTime<ModelCalled>;
type WithoutTime<T extends EntryHead> = T extends unknown
  ? Omit<T, 'execution' | 'head' | 'at'> & { at?: string }
  : never;

/** Journals of other runtimes have no such entries. */
export const isStepEntry = (entry: JournalEntry): entry is JournalEntry & { value: StepEntry } =>
  typeof (entry.value as Partial<StepEntry> | null)?.execution === 'number';
