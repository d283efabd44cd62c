import { StreamResponse, Task } from './model.js';

/** What one entry of a task's log says. A bare `message` never enters the log (see `Outcome`). */
export type EventPayload = Exclude<NonNullable<StreamResponse['payload']>, { $case: 'message' }>;

/** One entry of a task's log. `sequence` counts 1..n per task without holes. */
export interface TaskEvent {
  sequence: number;
  /** The run's fencing token when it was written; 0 for what the platform wrote outside a run. */
  attempt: number;
  payload: EventPayload;
}

/** A task as it was right after the event `sequence`. Only later events may follow it on a stream. */
export interface TaskSnapshot {
  task: Task;
  sequence: number;
}

/** The stored and published form of a payload: A2A 1.0 ProtoJSON of a StreamResponse, as text. */
export const serializePayload = (payload: EventPayload): string =>
  JSON.stringify(StreamResponse.toJSON({ payload }));

/** Inverse of `serializePayload`. Throws if the text is not an event of a log. */
export function parsePayload(json: string): EventPayload {
  const { payload } = StreamResponse.fromJSON(JSON.parse(json));
  if (!payload || payload.$case === 'message') throw new Error('not an event of a task log');
  return payload;
}
