import { type EventPayload, stateName, V1_0_CODEC } from '@baton/a2a';
import type { WebhookTarget } from '@baton/database';

/**
 * The body of a webhook for an event with a status (docs/calling/push.md#webhooks). The form is that of Standard Webhooks.
 * Results are left out: they can be large, and the receiver may read the task.
 */
export function webhookBody(
  { webhookId, agentId, agentSlug }: Pick<WebhookTarget, 'webhookId' | 'agentId' | 'agentSlug'>,
  sequence: number,
  payload: EventPayload,
): string {
  if (payload.$case === 'artifactUpdate') throw new Error(`Event ${sequence} has no status`);
  const { status, contextId } = payload.value;
  if (!status) throw new Error(`Event ${sequence} has no status`);
  const taskId = payload.$case === 'task' ? payload.value.id : payload.value.taskId;
  const update = { taskId, contextId, status, metadata: undefined };
  const event: EventPayload = { $case: 'statusUpdate', value: update };
  return JSON.stringify({
    type: 'task.state_changed',
    timestamp: status.timestamp,
    data: {
      webhook_id: webhookId,
      task_id: taskId,
      context_id: contextId,
      agent: agentSlug ?? agentId,
      state: stateName(status.state),
      sequence,
      event: V1_0_CODEC.encodeItem({ sequence, payload: event }),
    },
  });
}
