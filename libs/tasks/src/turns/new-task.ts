import { clock } from '@baton/telemetry';
import { type Message, type Task, TaskState } from '@baton/a2a';
import { v5 as derivedId, parse, v7 as uuid } from 'uuid';

/** The namespace of contexts that begin with a task. */
const NEW_CONTEXTS = parse('c1d3f0a6-52b7-4c0e-9d1b-7b0f4a5e6c28');

/**
 * The id of the context that begins with a task, when the caller has named none. It is derived from the id of the task. So a
 * worker needs no query to find that there are no earlier tasks in it: no caller can have the id of a task before it is created.
 */
export const newContextOf = (taskId: string): string => derivedId(taskId, NEW_CONTEXTS);

/**
 * The first state of a task: submitted, with one message. The message gets the ids of the task. It also gets an id if
 * it has none, because some protocol versions let callers leave it out.
 */
export function newTask(
  message: Message,
  {
    id = uuid(),
    contextId = newContextOf(id),
    metadata,
  }: Partial<Pick<Task, 'id' | 'contextId' | 'metadata'>>,
): Task {
  const timestamp = clock.date().toISOString();
  return {
    id,
    contextId,
    status: { state: TaskState.TASK_STATE_SUBMITTED, message: undefined, timestamp },
    artifacts: [],
    history: [{ ...withMessageId(message), taskId: id, contextId }],
    metadata,
  };
}

/** The message with an id. */
export const withMessageId = (message: Message): Message => ({
  ...message,
  messageId: message.messageId || uuid(),
});
