import { type Message, ProtocolError, type Task, TRUNCATED, type Truncation } from '@baton/a2a';
import { randomUUID } from 'node:crypto';

/**
 * The message that began a task, as a new one of the same context that refers to it.
 * @throws ProtocolError `unsupported-operation` if it is not there
 */
export function firstMessageOf({ id, contextId, history, metadata }: Task): Message {
  const [first] = history;
  const truncation = metadata?.[TRUNCATED] as Truncation | undefined;
  if (!first || truncation?.historyMessages !== undefined) {
    throw new ProtocolError(
      'unsupported-operation',
      'the messages of the task are too large to be sent again',
    );
  }
  const referenceTaskIds = [...first.referenceTaskIds, id];
  return { ...first, messageId: randomUUID(), taskId: '', contextId, referenceTaskIds };
}
