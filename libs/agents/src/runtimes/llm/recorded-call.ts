import type { ToolCallPart } from 'ai';

/** The two ids of a call. */
export interface CallIds {
  /** The model's id. Two calls may have the same. Releases up to 0.2 identify a call by it, and may run beside this one. */
  callId: string;
  /** Baton's id (`callIdOf`). Journals of releases up to 0.2 do not have it. */
  call?: string;
}

/** A tool call of the model, with its position among all calls of the task. */
export interface RecordedCall extends ToolCallPart {
  /** Number of the model's step in the task, from 1. */
  step: number;
  /** Position among the calls of that step, from 1. */
  index: number;
  /** The id of the call in requests to the model: the model's own id, or another one if two calls have the same. */
  sentId: string;
}

/** Baton's id of a call. It is unique in the task. The ids of models are not, not even in one answer. */
export const callIdOf = ({ step, index }: Pick<RecordedCall, 'step' | 'index'>): string =>
  `call-${step}-${index}`;

/** Both ids of a call for the journal. */
export const idsOf = (call: RecordedCall): CallIds => ({ callId: call.toolCallId, call: callIdOf(call) });
