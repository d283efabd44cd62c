import type { TenantSchemas } from '@baton/contract';
import { fetchApi } from '../../api/client';

/** A task that waits, as far as its answer needs it. */
export type AskingTask = Pick<
  TenantSchemas['TaskSummary'],
  'task_id' | 'agent_id' | 'updated_at' | 'approvals'
>;

interface SendAnswer {
  error?: { message: string };
}

/** Sends the next message of a task, and does not wait for what comes of it. Throws with the reason. */
export async function sendAnswer(
  { agent_id: agent, task_id: taskId }: AskingTask,
  parts: readonly object[],
): Promise<void> {
  const message = { messageId: crypto.randomUUID(), taskId, role: 'ROLE_USER', parts };
  const params = { message, configuration: { returnImmediately: true } };
  const response = await fetchApi(`/agents/${encodeURIComponent(agent)}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'a2a-version': '1.0' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'SendMessage', params }),
  });
  const { error } = (await response.json()) as SendAnswer;
  if (error) throw new Error(error.message);
}

/** A decision on a call, as a part of an answer. @param reason empty: none @param input with which the call is made; unset: its own */
export const decisionPart = (callId: string, approved: boolean, reason: string, input?: unknown): object => ({
  data: {
    approval: { callId, approved, ...(reason !== '' && { reason }), ...(input !== undefined && { input }) },
  },
});
