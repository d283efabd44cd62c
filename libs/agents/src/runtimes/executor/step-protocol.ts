// The protocol of durable steps between a worker and an agent's process.

export const STEP_KINDS = ['run', 'sleep', 'input', 'agent', 'patch', 'model', 'state', 'tool'] as const;
export type StepKind = (typeof STEP_KINDS)[number];

/** What was done about an unknown outcome. `verified`: the author's `verify` has looked. `asked`: a person has answered. */
export const OUTCOME_DECISIONS = ['repeated', 'verified', 'asked', 'failed'] as const;
export type OutcomeDecision = (typeof OUTCOME_DECISIONS)[number];

/** What a person has answered about an unknown outcome. `result` is JSON. `problem`: the answer cannot be read. */
export type OutcomeAnswer = { done: boolean; result?: string } | { problem: string };

/** Bounds of the steps of one task, since it last began anew with `continueAs`. Both sides check them: the process for a clear error, the
 * worker before it stores. */
export const STEP_LIMITS = {
  /** Steps of a task. */
  steps: 1000,
  /** The JSON of a result, or of a request to an agent, in bytes. */
  resultBytes: 256 * 1024,
  /** The JSON of a request to a model, in bytes. It is not stored. */
  modelRequestBytes: 4 * 1024 * 1024,
  /** Model calls that are made at a time. More wait. */
  modelCalls: 16,
  /** Requests of model calls that are made or wait, in bytes. */
  modelWaitingBytes: 64 * 1024 * 1024,
  /** Characters of a key of the state of a context. */
  stateKey: 128,
  /** The JSON of a value of it, in bytes. */
  stateBytes: 16 * 1024,
  /** Everything that is stored of the steps of a task, in bytes. */
  totalBytes: 8 * 1024 * 1024,
  /** Characters of a name. */
  name: 200,
  /** Tries of a step that fails. */
  attempts: 20,
  /** Steps that may be under way at a time. */
  inFlight: 100,
  /** Characters of an error's message. */
  error: 4_000,
  /** The JSON of an error's `data`, in bytes. */
  errorData: 16 * 1024,
  /** What compensations may store in addition, in bytes. */
  compensationBytes: 1024 * 1024,
  /** The longest sleep, in ms. */
  sleepMs: 366 * 86_400_000,
} as const;

/** The error of a step as it is stored. */
export interface StepFailure {
  name: string;
  message: string;
  /** As errors of Node.js and of HTTP clients have them. */
  code?: string | number;
  /** A JSON value. */
  data?: unknown;
}

/** `code` and `data` of an error, without those that are too large, or no JSON. May throw what the error's own members throw. */
export function errorExtras(error: object): Pick<StepFailure, 'code' | 'data'> {
  const { code, data } = error as { code?: unknown; data?: unknown };
  const isCode = typeof code === 'string' ? code.length <= STEP_LIMITS.name : Number.isFinite(code);
  const json = data === undefined ? undefined : (JSON.stringify(data) as string | undefined);
  const isData = json !== undefined && Buffer.byteLength(json) <= STEP_LIMITS.errorData;
  return {
    ...(isCode && { code: code as string | number }),
    // oxlint-disable-next-line no-restricted-properties -- bounded above
    ...(isData && { data: JSON.parse(json) as unknown }),
  };
}

/** A step that earlier attempts have begun. */
export interface RecordedStep {
  /** Position among the steps of the execution, in the order in which they began, from 1. */
  id: number;
  name: string;
  /** 1 = the first step of that name. */
  nth: number;
  kind: StepKind;
  /** No other step was under way when it began. */
  alone: boolean;
  /** How often it was begun. */
  attempts: number;
  /** How often it has failed. */
  failures: number;
  /** Key of its effect outside of Baton. The worker makes it: a new step has it once it has begun. */
  key?: string;
  /** Its last try has neither ended nor failed: its process died, so its outcome is not known. */
  isUnknown?: true;
  /** The answer of a person about an unknown outcome. */
  answer?: OutcomeAnswer;
  /** When it continues, in ms since 1970: the end of a sleep, of the wait for an answer, or of the pause before the next try. */
  until?: number;
  /** The task has continued without an answer to this question: a question with a higher number was asked later. */
  asked?: number;
  /** Its end. `order` counts the ends of the execution. */
  ended?: { order: number; result?: string; error?: StepFailure };
}

/** The code has thrown, and its finished steps are compensated. */
export interface Compensating {
  /** What it has thrown. */
  error: StepFailure;
  /** The steps to compensate, the last one first. */
  steps: number[];
  /** Set if this task undoes the steps of a canceled task. The code has not thrown. The turn ends when the steps are undone. */
  canceled?: true | undefined;
  /** Steps of a canceled task that can be undone and have not ended: the code may check whether their effects are there. */
  unknown?: number[] | undefined;
  /** The code has looked. What it finds later is undone last: a compensation keeps its key. */
  hasLooked?: true | undefined;
}

/** From the process: the outcome of a step. Results are JSON texts. */
export type StepMessage = { id: number } & (
  | {
      op: 'begin';
      name: string;
      nth: number;
      kind: StepKind;
      alone: boolean;
      /** For a sleep, and for a question with a timeout: how long, in ms. */
      ms?: number;
      /** For a call of an agent: its slug. */
      agent?: string;
      /**
       * JSON. For a call of an agent: `{message, data, taskId}`. For a model call: a `ModelCallRequest`. For a use of the
       * state of the context: a `StateRequest`.
       */
      request?: string;
      /** For a model call: the worker sends the text to the process as it arrives. */
      streams?: true;
      /** It can be undone. */
      compensates?: true;
      /** For a step whose earlier try has an unknown outcome. */
      decision?: OutcomeDecision;
    }
  | { op: 'end'; result?: string; decision?: OutcomeDecision }
  /** Tried again after `retryMs`; without it the error is final. With `decision: 'verified'` the check of the outcome has failed. */
  | { op: 'fail'; error: StepFailure; retryMs?: number; decision?: OutcomeDecision }
  /** The outcome of an earlier try is unknown: a person is asked about it next. */
  | { op: 'ask' }
  /** The code has thrown: the finished steps are compensated, and then the turn fails. The id is 0. */
  | ({ op: 'compensate' } & Compensating)
);

/** A use of the state of the context. Without `value` it is read. */
export interface StateRequest {
  key: string;
  /** JSON */
  value?: string;
  /** Write only if the key has this version. */
  expected?: number;
}

/** The worker's answer to a message about a step: it is stored. */
export type StepReply =
  | {
      /** When a sleep or a wait for an answer ends, the next try begins, or the server of a tool is asked again, in ms since 1970. */
      until?: number;
      /** For a step that has begun. */
      key?: string;
      /** For a call: the other agent is at work. */
      isWaiting?: true;
      /** For a call that has ended. For a model call: JSON of a `ModelCallAnswer`. The process ends the step then. */
      result?: string;
      /** For a model or tool call: a person is asked next. */
      asks?: true;
      /** A model or tool call has failed permanently. The process ends the step then. */
      failed?: StepFailure;
    }
  | { error: StepFailure };

/** Every step under way waits. The turn can be left: its code runs again when one of them continues. Or the code begins anew. */
export interface Parked {
  /** JSON of the state with which the next execution begins at once. Nothing else is set then. */
  continueAs?: string;
  /** The step that asks the caller, and the parts of its question as ProtoJSON. */
  input?: { id: number; question: unknown[] };
  /** Time until the first sleep or wait ends, in ms. */
  wakeInMs?: number;
}
