import { clock } from '@baton/telemetry';
import { detailsToJson, StreamResponse, TaskState } from '@baton/a2a';
import { isSaidByMessage } from '../log/log-rows.js';
import type { Inputs } from '../sql/statement.js';
import type { NewTask } from './task-records.js';
import { statusJson, statusNow } from './task-row.js';

/** A new task as it is written. */
export interface NewTaskRow {
  input: NewTask;
  /** Bytes of what it stores as JSON. */
  bytes: number;
  state: TaskState;
  status: string;
  statusAt: Date;
  metadata: string | undefined;
  message: string;
  /** Unset: the message stands for the first event. */
  event: string | undefined;
  /** The request without its message. */
  details: string | undefined;
}

/** The values of every new task, for each statement that writes one. */
export const NEW_TASK = {
  task_id: ['uuid', ({ input }) => input.task.id],
  agent_id: ['text', ({ input }) => input.agentId],
  context_id: ['text', ({ input }) => input.task.contextId],
  state: ['smallint', ({ state }) => state],
  status_at: ['timestamptz', ({ statusAt }) => statusAt],
  run_id: ['uuid', ({ input }) => input.runId],
  traceparent: ['text', ({ input }) => input.traceparent],
  owner: ['text', ({ input }) => input.owner],
  agent_label: ['text', ({ input }) => input.begins?.label],
  agent_version: ['int', ({ input }) => input.begins?.version],
} satisfies Inputs<NewTaskRow>;

/** ProtoJSON of event 1, as far as the task's row needs it. */
interface CreatedEvent {
  task: { history?: object[]; metadata?: object };
}

/** @throws TypeError unless the task has one message */
export function newTaskRow(input: NewTask): NewTaskRow {
  const { task } = input;
  const event = StreamResponse.toJSON({ payload: { $case: 'task', value: task } }) as CreatedEvent;
  const { history, metadata } = event.task;
  if (history?.length !== 1) throw new TypeError('A new task has one message');
  const message = JSON.stringify(history[0]);
  const { status = statusNow(TaskState.TASK_STATE_SUBMITTED).status } = task;
  const statusAt = status.timestamp ? new Date(status.timestamp) : clock.date();
  const text = JSON.stringify(event);
  const ids = { taskId: task.id, contextId: task.contextId };
  const stored = isSaidByMessage(text, ids, message, statusAt) ? undefined : text;
  const details = input.details && JSON.stringify(detailsToJson(input.details));
  return {
    input,
    message,
    event: stored,
    details,
    bytes: [message, stored, details].reduce(
      (sum, json) => sum + Buffer.byteLength(json ?? ''),
      input.copiedBytes ?? 0,
    ),
    state: status.state,
    status: statusJson(status, statusAt.toISOString()),
    statusAt,
    metadata: metadata && JSON.stringify(metadata),
  };
}

/**
 * SQL of how many native webhooks are notified of a new task. For a tenant without webhooks this costs one index lookup. The
 * parameters are SQL.
 */
export const webhooksOf = (tenant: string, task: string, agent: string): string =>
  `CASE WHEN EXISTS (SELECT FROM webhooks w WHERE w.tenant_id = ${tenant} AND w.enabled)
    THEN attach_push_configs(${tenant}, ${task}, ${agent}) ELSE 0 END`;

/** What a statement that creates tasks answers for each. */
export interface CreatedRow {
  /** The created task, or the existing one; null = the run was refused by the quota. */
  task_id: string | null;
  content?: Buffer | null;
  dispatched: boolean;
  /** Its run is claimed for the worker that was named. */
  claimed?: boolean;
  may_use_reserved: boolean;
}
