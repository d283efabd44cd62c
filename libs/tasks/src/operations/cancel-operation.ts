import {
  type CallContext,
  type CancelTaskRequest,
  ProtocolError,
  type Task,
  TaskState,
  withoutReserved,
  writableTasks,
} from '@baton/a2a';
import { Injectable } from '@nestjs/common';
import { TurnEnds } from '../turns/turn-ends.js';
import { actorOf } from '../core/actor.js';
import { TaskFinder } from './task-finder.js';

/** CancelTask (A2A 1.0 §3.1.5). */
@Injectable()
export class CancelOperation {
  constructor(
    private readonly turnEnds: TurnEnds,
    private readonly finder: TaskFinder,
  ) {}

  /** Cancels the task and its children. */
  async cancelTask(call: CallContext, request: CancelTaskRequest): Promise<Task> {
    const { tenantId, rules } = call;
    const taskId = await this.finder.idOf(call, request.id);
    const agentId = rules.taskScope === 'tenant' ? null : call.agent.id;
    // The statement that cancels compares with one agent, or with none. It cannot check a list of agents.
    if (call.agents && agentId === null) await this.finder.find(call, request.id, { artifacts: false });
    const metadata = rules.cancelMetadata === 'kept' ? withoutReserved(request.metadata) : undefined;
    const result = await this.turnEnds.cancel(tenantId, agentId, taskId, {
      metadata,
      own: writableTasks(call),
      by: actorOf(call),
    });
    if (!result.ok && result.reason === 'not-found') {
      // Says also why a task that the caller sees is not canceled.
      await this.finder.find(call, request.id, { historyLength: 0, artifacts: false });
      throw await this.finder.notFound(call, request.id, taskId);
    }
    if (!result.ok) return this.endedTask(call, request.id);
    const { truncation, task } = result.snapshot;
    if (!truncation) return task;
    // It is canceled, even if reading more of it fails.
    const stored = await this.finder.find(call, request.id).catch(() => undefined);
    return stored?.task ?? task;
  }

  /** The task has ended. In some profiles, canceling a canceled task is no error. */
  private async endedTask(call: CallContext, id: string): Promise<Task> {
    const { task } = await this.finder.find(call, id);
    const canceled = task.status?.state === TaskState.TASK_STATE_CANCELED;
    if (canceled && call.rules.cancelAgain === 'returns-it') return task;
    throw new ProtocolError('task-not-cancelable', 'The task has ended and can no longer be canceled', {
      metadata: { taskId: id },
    });
  }
}
