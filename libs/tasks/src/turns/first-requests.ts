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

/** Repeats the request that created a task. */
@Injectable()
export class FirstRequests {
  constructor(private readonly tasks: TaskStore) {}

  /**
   * Builds a new request from the request that created a task. Its message has a new id, the same context, and a reference to the task.
   * @returns the new message, and the metadata and configuration of the first request
   * @throws ProtocolError `unsupported-operation` if the history of the task was cut, so its first message is missing
   */
  async repeatFor(
    tenantId: string,
    task: Task,
  ): Promise<{ message: Message; details: RequestDetails | undefined }> {
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
