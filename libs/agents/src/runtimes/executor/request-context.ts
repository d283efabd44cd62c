import { type Message, Role, type Task, TaskState } from '@baton/a2a';
import { RequestContext, ServerCallContext } from '@a2a-js/sdk/server';
import type { Turn } from '../../runtime.js';
import { historyBefore } from '../../turn.js';

/**
 * What the SDK's own server would give an executor for this turn: the message with both ids filled in, the
 * stored task from the second turn on (none in the first), the referenced tasks, and only those requested
 * extensions that the agent declares. The earlier tasks of the context stand among the references: a caller
 * that names the context goes on with a conversation, and an executor has no other way to know of it.
 */
export async function requestContext(turn: Turn): Promise<RequestContext> {
  const { tenantId, task, message, referenceTasks } = turn;
  const declared = new Set(turn.agent.definition.extensions.map(({ uri }) => uri));
  const call = new ServerCallContext({
    tenant: tenantId,
    user: { isAuthenticated: true, userName: tenantId },
    requestedExtensions: turn.extensions.filter((uri) => declared.has(uri)),
    requestedVersion: '1.0',
  });
  const request = {
    tenant: tenantId,
    message: { ...message, taskId: task.id, contextId: task.contextId },
    configuration: undefined,
    metadata: undefined,
  };
  const named = new Set(referenceTasks.map(({ id }) => id));
  const earlier = (await turn.earlierTasks()).filter(({ id }) => !named.has(id));
  const known = structuredClone([...earlier, ...referenceTasks]);
  const references = known.length > 0 || message.referenceTaskIds.length > 0 ? known : undefined;
  return new RequestContext(request, task.id, task.contextId, call, storedTask(turn), references);
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
  return structuredClone({
    ...turn.task,
    status: {
      state: TaskState.TASK_STATE_INPUT_REQUIRED,
      message: asked,
      timestamp: turn.task.status?.timestamp,
    },
    // What a dead attempt of this turn had said comes after the message; it is not part of the question.
    history: [...before, turn.message],
  });
}
