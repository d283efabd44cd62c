import { Message, Role, Task, TaskState } from '@baton/a2a';
import { historyBefore, type Turn } from '../../runtime.js';
import type { TurnRequest } from './protocol.js';

/**
 * What an executor is told of a turn: the message with both ids filled in, the stored task from the second turn on
 * (none in the first), the referenced tasks, and only those requested extensions that the agent declares. The
 * earlier tasks of the context stand among the references: a caller that names the context goes on with a
 * conversation, and an executor has no other way to know of it.
 */
export async function turnRequest(turn: Turn): Promise<TurnRequest> {
  const { tenantId, task, message, referenceTasks } = turn;
  const declared = new Set(turn.agent.definition.extensions.map(({ uri }) => uri));
  const named = new Set(referenceTasks.map(({ id }) => id));
  const earlier = (await turn.earlierTasks()).filter(({ id }) => !named.has(id));
  const known = [...earlier, ...referenceTasks];
  const refers = known.length > 0 || message.referenceTaskIds.length > 0;
  const stored = storedTask(turn);
  return {
    tenantId,
    taskId: task.id,
    contextId: task.contextId,
    message: Message.toJSON({ ...message, taskId: task.id, contextId: task.contextId }),
    extensions: turn.extensions.filter((uri) => declared.has(uri)),
    ...(stored && { task: Task.toJSON(stored) }),
    ...(refers && { referenceTasks: known.map((reference) => Task.toJSON(reference)) }),
  };
}

/**
 * The task as it was when the message came in. Executors look at its status to see that they are being
 * answered, but by now it says `working`; so the status that asked is put back. Only an interrupted task can
 * be continued, and what it asked is the last thing the agent said.
 */
function storedTask(turn: Turn): Task | undefined {
  const before = historyBefore(turn);
  if (before.length === 0) return undefined;
  const asked = before.findLast(({ role }: Message) => role === Role.ROLE_AGENT);
  return {
    ...turn.task,
    status: {
      state: TaskState.TASK_STATE_INPUT_REQUIRED,
      message: asked,
      timestamp: turn.task.status?.timestamp,
    },
    // What a dead attempt of this turn had said comes after the message; it is not part of the question.
    history: [...before, turn.message],
  };
}
