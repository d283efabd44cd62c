import {
  type CallContext,
  type CancelTaskRequest,
  ProtocolError,
  type Task,
  serializePayload,
} from '@baton/a2a';
import { TaskStore } from '@baton/database';
import { Messaging } from '@baton/messaging';
import { Injectable } from '@nestjs/common';

/** CancelTask (A2A 1.0 §3.1.5). */
@Injectable()
export class CancelOperation {
  constructor(
    private readonly tasks: TaskStore,
    private readonly messaging: Messaging,
  ) {}

  /**
   * One guarded statement makes the task `canceled`; only then is the runtime told to stop, wherever it runs.
   * If that message is lost, the worker's next heartbeat finds out.
   */
  async cancelTask(call: CallContext, request: CancelTaskRequest): Promise<Task> {
    const { tenantId } = call;
    const taskId = request.id;
    const result = await this.tasks.cancel(tenantId, call.agent.id, taskId);
    if (!result.ok && result.reason === 'not-found') throw ProtocolError.taskNotFound(taskId);
    if (!result.ok) {
      throw new ProtocolError('task-not-cancelable', 'The task has ended and can no longer be canceled', {
        metadata: { taskId },
      });
    }
    const { cut, event, runId } = result;
    const json = serializePayload(event.payload);
    const published = { sequence: event.sequence, attempt: 0, json };
    await Promise.all([
      this.messaging.publishTask(tenantId, taskId, { lastSequence: event.sequence, events: [published] }),
      runId && this.messaging.publishControl({ type: 'run-canceled', tenantId, taskId, runId }),
    ]);
    return cut.task;
  }
}
