import type { TenantSchemas } from '@baton/contract';
import { sendMessage } from '../../a2a/send-message';

/** A task that waits, as far as its answer needs it. */
export type AskingTask = Pick<
  TenantSchemas['TaskSummary'],
  'task_id' | 'agent_id' | 'updated_at' | 'approvals'
>;

/** Sends the next message of a task. @throws Error with the reason */
export async function sendAnswer(task: AskingTask, parts: readonly object[]): Promise<void> {
  await sendMessage({ agent: task.agent_id, taskId: task.task_id, parts });
}

/** A decision on a call, as a part of an answer. @param reason empty: none @param input with which the call is made; unset: its own */
export const decisionPart = (callId: string, approved: boolean, reason: string, input?: unknown): object => ({
  data: {
    approval: { callId, approved, ...(reason !== '' && { reason }), ...(input !== undefined && { input }) },
  },
});
