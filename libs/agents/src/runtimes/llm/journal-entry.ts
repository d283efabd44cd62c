import type { AssistantModelMessage, FinishReason } from 'ai';
import type { Decision } from '../../approvals.js';
import type { JournalEntry } from '../../runtime.js';
import type { ToolResult } from './tools/agent-tool.js';
import type { Usage } from './usage.js';

/** A message of the user's that is a prompt: its place in the history of the task. */
export interface Asked {
  kind: 'asked';
  at: number;
}

/** A call of the model that has ended. */
export interface ModelStep {
  kind: 'step';
  message: AssistantModelMessage;
  finish: FinishReason;
  usage: Usage;
  model: string;
}

/** A call of a tool that must not be made twice is about to be made. */
interface CallBegun {
  kind: 'begun';
  callId: string;
}

/** What a tool has answered. */
export interface CallResult {
  kind: 'result';
  callId: string;
  result: ToolResult;
}

/** The turn ends with the question whether these calls may be made, those of children included. */
interface Waiting {
  kind: 'waiting';
  callIds: string[];
}

/** A message of the user's that was the answer about calls that wait for approval. */
interface Answered {
  kind: 'answered';
  decisions: Decision[];
}

/** What the model is told about an answer that is not what was asked for. */
interface Correction {
  kind: 'correction';
  text: string;
}

/** What an llm agent remembers of its task, in the order in which it came to be. */
export type LlmEntry = Asked | ModelStep | CallBegun | CallResult | Waiting | Answered | Correction;

/** An entry with its place in the journal. */
export type RecordedEntry = LlmEntry & Pick<JournalEntry, 'runId' | 'position'>;

/** Only this runtime writes into the journals of its tasks. */
export const recordedEntry = ({ runId, position, value }: JournalEntry): RecordedEntry => ({
  ...(value as LlmEntry),
  runId,
  position,
});
