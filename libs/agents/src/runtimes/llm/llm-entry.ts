import type { AssistantModelMessage, FinishReason } from 'ai';
import type { JournalEntry } from '../../agent-runtime.js';
import type { Decision } from '../../approvals.js';
import type { CapQuestion } from '../../cap-reached.js';
import type { WrongCall } from './wrong-calls.js';
import type { ModelUsage } from './model-usage.js';
import type { CallIds } from './recorded-call.js';
import type { RemoteCall } from './tools/remote-call.js';
import type { ToolResult } from './tools/tool-sources.js';

/** A message of the user that is a prompt: its index in the history of the task. */
export interface UserPrompt {
  kind: 'asked';
  at: number;
}

/** When a call of the model or of a tool was made. Journals of earlier releases do not have it. */
interface CallTime {
  /** ISO 8601 */
  at?: string;
  /** Its duration. */
  ms?: number;
}

/** A completed call of the model. */
export interface ModelStep extends CallTime {
  kind: 'step';
  /** Has calls only if the answer is whole, and all its calls are. */
  message: AssistantModelMessage;
  finish: FinishReason;
  /** The provider's own reason for the end of the answer. Journals of releases up to 0.2 do not have it. */
  rawFinish?: string;
  /** The tools that the answer asks for, if no call of it is made. */
  notMade?: string[];
  /** The calls that are the reason for it. The model corrects them once. */
  wrongCalls?: WrongCall[];
  usage: ModelUsage;
  model: string;
  /** Its number among the `fallback` models of the agent, from 1. Unset: the agent's `model`. */
  fallback?: number;
}

/** A call of the model that failed. It is for readers of the task; the conversation continues as if it was not made. */
export interface FailedCall extends CallTime {
  kind: 'failed-call';
  usage: ModelUsage;
  model: string;
  /** As of a step. */
  fallback?: number;
  /** In plain words, for the callers of the task. */
  error: string;
}

/** A tool call that must not be repeated without a person's word is about to be sent. Without a result its outcome is unknown. */
interface CallBegun extends CallIds {
  kind: 'begun';
}

/** A call that its server has refused unread, because there is no sign-in. */
interface CallUnsent extends CallIds {
  kind: 'unsent';
}

/** The result of a tool call. */
export interface CallResult extends CallIds, CallTime {
  kind: 'result';
  /** Name of the tool, as the model wrote it. Journals of releases up to 0.2 do not have it. */
  tool?: string;
  /** The input to which a person has changed the call. */
  input?: unknown;
  result: ToolResult;
}

/** The server of a tool executes the call as a task of its own, or has asked about it. The newest entry of a call counts. */
interface CallRemote extends CallIds {
  kind: 'remote';
  remote: RemoteCall;
}

/** The turn ended with a request to approve these calls, also calls of child tasks. */
export interface WaitingForApproval {
  kind: 'waiting';
  callIds: string[];
  /** ISO 8601, by the id of a call: from then on it counts as refused. */
  expiresAt?: Record<string, string>;
  /** Those that ask for data. */
  forms?: string[];
  /** It asks about no call, but about a spending cap. */
  cap?: CapQuestion;
}

/** A message of the user that answered a request for approval. */
export interface Answered {
  kind: 'answered';
  decisions: Decision[];
}

/** A message to the model about its invalid answer. */
interface Correction {
  kind: 'correction';
  text: string;
}

/** A provider has refused a request with the files of all results before it. They are not shown again. */
interface RefusedFiles {
  kind: 'files-refused';
}

/** A summary that the model has made of the first steps of the task, and of all before them. */
export interface SummaryEntry extends Omit<ModelStep, 'kind' | 'message'> {
  kind: 'summary';
  /** How many steps. */
  steps: number;
  text: string;
}

/** One journal entry of an llm agent. */
export type LlmEntry =
  | SummaryEntry
  | UserPrompt
  | ModelStep
  | FailedCall
  | CallBegun
  | CallUnsent
  | CallRemote
  | CallResult
  | WaitingForApproval
  | Answered
  | RefusedFiles
  | Correction;

/** An entry with its run and position in the journal. */
export type RecordedEntry = LlmEntry & Pick<JournalEntry, 'runId' | 'position'>;

/** Only this runtime writes into the journals of its tasks. */
export const recordedEntry = ({ runId, position, value }: JournalEntry): RecordedEntry => ({
  ...(value as LlmEntry),
  runId,
  position,
});

/** The text of a step's answer. */
export const textOfStep = ({ message: { content } }: Pick<ModelStep, 'message'>): string =>
  typeof content === 'string'
    ? content
    : content.map((part) => (part.type === 'text' ? part.text : '')).join('');

/** The reasoning of a step. */
export const reasoningOfStep = ({ message: { content } }: Pick<ModelStep, 'message'>): string =>
  typeof content === 'string'
    ? ''
    : content.map((part) => (part.type === 'reasoning' ? part.text : '')).join('');
