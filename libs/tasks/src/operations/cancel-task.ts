import {
  type CallContext,
  type CancelTaskRequest,
  ProtocolError,
  type Task,
  TaskState,
  serializePayload,
} from '@baton/a2a';
import { TaskStore } from '@baton/database';
import { Messaging } from '@baton/messaging';
import { Injectable } from '@nestjs/common';
import { Dispatcher } from '../dispatch/dispatcher.js';
import { TaskFinder } from './find-task.js';

/** CancelTask (A2A 1.0 §3.1.5). */
@Injectable()
export class CancelOperation {
  constructor(
    private readonly tasks: TaskStore,
    private readonly finder: TaskFinder,
    private readonly messaging: Messaging,
    private readonly dispatcher: Dispatcher,
  ) {}

  /**
   * One guarded statement makes the task `canceled`; only then is the runtime told to stop, wherever it runs.
   * If that message is lost, the worker's next heartbeat finds out.
   */
  async cancelTask(call: CallContext, request: CancelTaskRequest): Promise<Task> {
    const { tenantId, rules } = call;
    const taskId = await this.finder.idOf(call, request.id);
    const agentId = rules.taskScope === 'tenant' ? null : call.agent.id;
    const metadata = rules.cancelMetadata === 'kept' ? request.metadata : undefined;
    const result = await this.tasks.cancel(tenantId, agentId, taskId, { metadata });
    if (!result.ok && result.reason === 'not-found') {
      throw await this.finder.notFound(call, request.id, taskId);
    }
    if (!result.ok) return this.endedTask(call, request.id);
    const { cut, event, runId } = result;
    if (runId) this.dispatcher.ended(tenantId);
    const json = serializePayload(event.payload);
    const published = { sequence: event.sequence, attempt: 0, json };
    await Promise.all([
      this.messaging.publishTask(tenantId, taskId, { lastSequence: event.sequence, events: [published] }),
      runId && this.messaging.publishControl({ type: 'run-canceled', tenantId, taskId, runId }),
    ]);
    return cut.task;
  }

  /** A task that has ended: a profile may say that canceling a canceled one is no error. */
  private async endedTask(call: CallContext, id: string): Promise<Task> {
    const { task } = await this.finder.find(call, id);
    const canceled = task.status?.state === TaskState.TASK_STATE_CANCELED;
    if (canceled && call.rules.cancelAgain === 'returns-it') return task;
    throw new ProtocolError('task-not-cancelable', 'The task has ended and can no longer be canceled', {
      metadata: { taskId: id },
    });
  }
}
