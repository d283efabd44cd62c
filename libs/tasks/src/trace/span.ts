/** What a span of a trace is. */
export type SpanKind =
  /** From the acceptance of a message to the end of its turn. */
  | 'turn'
  /** A run waits for a slot of a worker, or for the end of its backoff. Its name is the attempt that follows. */
  | 'queue'
  /** A run waits for other code of its agent. Its name is the attempt that did not fit. */
  | 'parked'
  /** A worker executes a run. */
  | 'attempt'
  | 'model'
  | 'tool'
  /** A durable step of an agent in code. */
  | 'step'
  /** A durable sleep of an agent in code. */
  | 'sleep'
  /** The task waits for an answer, an approval or a sign-in. */
  | 'question'
  /** A task that this one has begun. */
  | 'child'
  /** A push receiver of the task. */
  | 'push'
  /** A request to a push receiver. */
  | 'delivery';

export type SpanState = 'running' | 'waiting' | 'succeeded' | 'failed' | 'canceled';

/** A part of a task's life, with a beginning and an end. */
export interface TraceSpan {
  /** Unique in the trace. */
  id: string;
  /** The span around it. Null: none. */
  parentId: string | null;
  kind: SpanKind;
  /** The number of a turn or attempt, the name of a model, tool, step, state or agent, a host, or the answer to a delivery. */
  name: string;
  startedAt: Date;
  /** Null: it has not ended. */
  endedAt: Date | null;
  state: SpanState;
  /** The attempt of the run that it belongs to. */
  attempt?: number;
  /** Why it failed, in the words that callers may read. */
  error?: string;
  /** For an attempt, unless an earlier release made it and another one followed. */
  workerId?: string;
  /** For a child. */
  taskId?: string;
  /** For a model call: which one of those that the trace has, from 0. */
  modelCall?: number;
  /** For a model call, a tool call or a step: its entry in the journal of the task. */
  entry?: number;
  /** For a question: key of the principal that has answered it. */
  answeredBy?: string;
  /** For a step whose process died while it ran: what was done about the unknown outcome. */
  unknownOutcome?: 'repeated' | 'verified' | 'asked' | 'failed';
}
