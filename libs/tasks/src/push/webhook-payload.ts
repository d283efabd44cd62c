import { type EventPayload, isInterrupted, stateName, type Task, V1_0_CODEC } from '@baton/a2a';
import type { TaskReminder, WebhookTarget } from '@baton/database';

/** The task of a webhook's body, and the webhook. */
interface WebhookSubject extends Pick<WebhookTarget, 'webhookId' | 'agentId' | 'agentSlug'> {
  /** PUBLIC_URL. */
  publicUrl: string;
}

/**
 * The body of a webhook for an event with a status (docs/calling/push.md#webhooks). The form is that of Standard Webhooks.
 * Results are left out: they can be large, and the receiver may read the task.
 */
export function webhookBody(subject: WebhookSubject, sequence: number, payload: EventPayload): string {
  if (payload.$case === 'artifactUpdate') throw new Error(`Event ${sequence} has no status`);
  return JSON.stringify(bodyOf(subject, sequence, payload));
}

/**
 * The body that reminds of a task that waits for a person: that of its question with `reminder`, or of an event of its own.
 * @param sequence of the last event of its log
 */
export function reminderBody(
  { kind, since, ...subject }: TaskReminder & WebhookSubject,
  sequence: number,
  { id: taskId, contextId, status }: Task,
): string {
  const payload: EventPayload = {
    $case: 'statusUpdate',
    value: { taskId, contextId, status, metadata: undefined },
  };
  const body = bodyOf(subject, sequence, payload);
  const waits = { waiting_since: since.toISOString() };
  return JSON.stringify(
    kind === 'reminder'
      ? { ...body, data: { ...body.data, reminder: true, ...waits } }
      : { ...body, type: 'task.escalation', data: { ...body.data, ...waits } },
  );
}

function bodyOf(
  { webhookId, agentId, agentSlug, publicUrl }: WebhookSubject,
  sequence: number,
  payload: Exclude<EventPayload, { $case: 'artifactUpdate' }>,
) {
  const { status, contextId } = payload.value;
  if (!status) throw new Error(`Event ${sequence} has no status`);
  const taskId = payload.$case === 'task' ? payload.value.id : payload.value.taskId;
  const update = { taskId, contextId, status, metadata: undefined };
  const event: EventPayload = { $case: 'statusUpdate', value: update };
  return {
    type: 'task.state_changed',
    timestamp: status.timestamp,
    data: {
      webhook_id: webhookId,
      task_id: taskId,
      context_id: contextId,
      agent: agentSlug ?? agentId,
      state: stateName(status.state),
      sequence,
      // The page has the question, and the form of the answer.
      ...(isInterrupted(status.state) && { answer_url: `${publicUrl}/console/tasks/${taskId}` }),
      event: V1_0_CODEC.encodeItem({ sequence, payload: event }),
    },
  };
}
