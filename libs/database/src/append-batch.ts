import { Message, TaskState, TaskStatus, endsTurn, type EventPayload } from '@baton/a2a';
import type { AppendBatch, RunKey } from './records.js';
import { artifactsJson } from './task-row.js';

/** The values of `APPEND`, or of `APPEND_END` if the batch ends the turn. Throws on a batch that contradicts itself. */
export function appendValues(key: RunKey, batch: AppendBatch, metadata: object | undefined): unknown[] {
  const { events, end, afterSequence } = batch;
  const statuses = events.map(({ payload }) => statusOf(payload));
  const last = statuses.findLast((status) => status !== undefined);
  checkEnd(statuses, end?.state);
  const said = statuses.flatMap((status, i) =>
    status?.message ? [{ position: i + 1, message: status.message }] : [],
  );
  const values = [
    ...[key.tenantId, key.taskId, key.runId, key.attempt, afterSequence],
    ...[events.length, `[${events.map(({ json }) => json).join(',')}]`],
    ...[last?.state, last && JSON.stringify(TaskStatus.toJSON(last)), last && statusTime(last)],
    said.map(({ position }) => position),
    said.map(({ message }) => JSON.stringify(Message.toJSON(message))),
    metadata && JSON.stringify(metadata),
  ];
  if (!end) return values;
  return [...values, artifactsJson(end.artifacts), end.outcome, runState(end.state), plainText(end.error)];
}

function statusOf(payload: EventPayload): TaskStatus | undefined {
  return payload.$case === 'artifactUpdate' ? undefined : payload.value.status;
}

/** A state that ends the turn stands in the last event and nowhere else, and the batch says so. */
function checkEnd(statuses: readonly (TaskStatus | undefined)[], end: TaskState | undefined): void {
  const ending = statuses.findIndex((status) => status && endsTurn(status.state));
  const expected = end === undefined ? -1 : statuses.length - 1;
  if (ending !== expected || (end !== undefined && statuses[ending]?.state !== end)) {
    throw new TypeError('A turn ends with the last event of a batch, and the batch must say so');
  }
}

function statusTime({ timestamp }: TaskStatus): Date {
  const at = new Date(timestamp ?? Date.now());
  return Number.isNaN(at.getTime()) ? new Date() : at;
}

function runState(state: TaskState): string {
  if (state === TaskState.TASK_STATE_FAILED) return 'failed';
  return state === TaskState.TASK_STATE_CANCELED ? 'canceled' : 'succeeded';
}

/** Text columns can't hold U+0000. */
const plainText = (text: string | undefined): string | undefined => text?.replaceAll('\0', '\uFFFD');
