import {
  type Message,
  ProtocolError,
  type RequestDetails,
  type Task,
  TRUNCATED,
  type Truncation,
} from '@baton/a2a';
import { TaskStore } from '@baton/database';
import { Injectable } from '@nestjs/common';
import { randomUUID } from 'node:crypto';

/** The requests that began tasks, to be sent again. */
@Injectable()
export class FirstRequests {
  constructor(private readonly tasks: TaskStore) {}

  /**
   * The message that began a task, as a new one of the same context that refers to it, and the metadata and configuration of its request.
   * @throws ProtocolError `unsupported-operation` if the message is not there
   */
  async of(tenantId: string, task: Task): Promise<{ message: Message; details: RequestDetails | undefined }> {
    const message = firstMessageOf(task);
    return { message, details: await this.tasks.firstDetails(tenantId, task.id) };
  }
}

function firstMessageOf({ id, contextId, history, metadata }: Task): Message {
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
