import { type Message, type Task, TaskState } from '../../model.js';
import { agentMessage, finalMessage, replyId, textPart } from '../../reply.js';

/** The final message under Arbiter's id for it. A completed task always has one. */
export function replyOf(task: Pick<Task, 'id' | 'contextId' | 'status' | 'artifacts'>): Message | undefined {
  const said = finalMessage({ ...task, history: [], metadata: undefined });
  if (said) return { ...said, messageId: replyId(task.id) };
  const completed = task.status?.state === TaskState.TASK_STATE_COMPLETED;
  return completed ? agentMessage(task, replyId(task.id), [textPart('')]) : undefined;
}
