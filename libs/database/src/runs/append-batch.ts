import { endsTurn, type EventPayload, Message, TaskState, TaskStatus } from '@baton/a2a';
import type { RunKey } from '../dispatch/run-key.js';
import type { AppendBatch } from '../tasks/records.js';
import { artifactKey } from '../tasks/task-content.js';
import { artifactsJson, INLINE_BYTES } from '../tasks/task-row.js';

/** Events that belong to no artifact. */
const NO_ARTIFACT = '0';

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
    ...[keysOf(events), startsOf(events)],
  ];
  if (!end) return values;
  const artifacts = end.artifacts && artifactsJson(end.artifacts);
  const small = artifacts !== undefined && Buffer.byteLength(artifacts) <= INLINE_BYTES;
  return [...values, small ? artifacts : null, end.outcome, runState(end.state), plainText(end.error)];
}

/** Which artifact each event belongs to. */
function keysOf(events: AppendBatch['events']): string[] {
  const keys = new Map<string, string>();
  return events.map(({ payload }) => {
    if (payload.$case !== 'artifactUpdate' || !payload.value.artifact) return NO_ARTIFACT;
    const { artifactId } = payload.value.artifact;
    const key = keys.get(artifactId) ?? artifactKey(artifactId);
    keys.set(artifactId, key);
    return key;
  });
}

/** The positions, from 1, of the events that replace what was said of their artifact before. */
const startsOf = (events: AppendBatch['events']): number[] =>
  events.flatMap(({ payload, isFirst }, i) =>
    payload.$case === 'artifactUpdate' && !payload.value.append && !isFirst ? [i + 1] : [],
  );

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
