import { detailsToJson, Message, Role, Task, TaskState } from '@baton/a2a';
import { type Turn, historyBefore } from '../../agent-runtime.js';
import type { JournaledSteps } from './steps/journaled-steps.js';
import type { TurnRequest } from './protocol.js';

/**
 * Builds the request that an executor receives for a turn: the message with both ids, the stored task (from the second turn on), the
 * referenced tasks, `metadata` and `configuration` of the request, and those requested extensions that the agent declares. The earlier
 * tasks of the context are among the references, because an executor has no other way to read the conversation. An answer to
 * `waitForInput` is the result of a step, so the request is that of the turn that has asked.
 */
export async function turnRequest(journal: JournaledSteps): Promise<TurnRequest> {
  const turn = journal.firstTurn;
  const { tenantId, task, message, details, referenceTasks } = turn;
  const declared = new Set(turn.agent.definition.extensions.map(({ uri }) => uri));
  const named = new Set(referenceTasks.map(({ id }) => id));
  const earlier = (await turn.earlierTasks()).filter(({ id }) => !named.has(id));
  const known = [...earlier, ...referenceTasks];
  const refers = known.length > 0 || message.referenceTaskIds.length > 0;
  const stored = storedTask(turn);
  const { recorded, compensating, lastState } = journal;
  return {
    tenantId,
    taskId: task.id,
    contextId: task.contextId,
    message: Message.toJSON({ ...message, taskId: task.id, contextId: task.contextId }),
    details: detailsToJson(details),
    extensions: turn.extensions.filter((uri) => declared.has(uri)),
    ...(stored && { task: Task.toJSON(stored) }),
    ...(recorded.length > 0 && { steps: recorded }),
    ...(compensating && { compensating }),
    ...(lastState !== undefined && { lastState }),
    ...(refers && { referenceTasks: known.map((reference) => Task.toJSON(reference)) }),
  };
}

/**
 * The task as it was when the message arrived. Executors read its status to see that the message is an answer, but the
 * stored status is `working` by now. So this restores the status that asked: only an interrupted task accepts another
 * message, and its question is the agent's last message.
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
    // Messages of a crashed attempt of this turn come after the user's message. They are not part of the question.
    history: [...before, turn.message],
  };
}
