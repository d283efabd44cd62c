import { isTerminal, ProtocolError, TaskState, wellFormed, writableTasks } from '@baton/a2a';
import { type BulkAction, type ClaimedBulk, RetentionStore, RunStore, TaskStore } from '@baton/database';
import { Injectable } from '@nestjs/common';
import { v5 as uuidOf } from 'uuid';
import { AgentDirectory } from '../catalog/agent-directory.js';
import { RunDispatcher } from '../dispatch/run-dispatcher.js';
import { TaskForks } from '../forks/task-forks.js';
import { FirstRequests } from '../turns/first-requests.js';
import { TurnAcceptance } from '../turns/turn-acceptance.js';
import { newTask } from '../turns/new-task.js';
import { TurnEnds } from '../turns/turn-ends.js';

/** `skipped`: there was nothing to do any more. */
type ActionOutcome = 'done' | 'skipped';
type TaskAction = (operation: ClaimedBulk, taskId: string) => Promise<ActionOutcome>;

/** What an operation on many tasks does to one of them. Each may be called again after a crash, and has its effect once. */
@Injectable()
export class TaskActions {
  constructor(
    private readonly tasks: TaskStore,
    private readonly runs: RunStore,
    private readonly retention: RetentionStore,
    private readonly agents: AgentDirectory,
    private readonly acceptance: TurnAcceptance,
    private readonly turnEnds: TurnEnds,
    private readonly dispatcher: RunDispatcher,
    private readonly forks: TaskForks,
    private readonly firstRequests: FirstRequests,
  ) {}

  private readonly actions: Readonly<Record<BulkAction, TaskAction>> = {
    cancel: (operation, taskId) => this.cancel(operation, taskId),
    resume: (operation, taskId) => this.resume(operation, taskId),
    continue: (operation, taskId) => this.continueFailed(operation, taskId),
    'send-again': (operation, taskId) => this.sendAgain(operation, taskId),
    delete: (operation, taskId) => this.delete(operation, taskId),
  };

  /** Performs the action of a bulk operation on one task. @throws ProtocolError with the reason; `limit-exceeded` if a later try can succeed */
  async perform(operation: ClaimedBulk, taskId: string): Promise<ActionOutcome> {
    return this.actions[operation.action](operation, taskId);
  }

  private async cancel(operation: ClaimedBulk, taskId: string): Promise<ActionOutcome> {
    const { tenantId, actor, caller } = operation;
    const result = await this.turnEnds.cancel(tenantId, null, taskId, {
      own: writableTasks(caller),
      by: actor,
    });
    if (result.ok) return 'done';
    // A worker may have canceled it and died.
    const now = await this.tasks.get(tenantId, taskId, { historyLength: 0, artifacts: false });
    return now?.task.status?.state === TaskState.TASK_STATE_CANCELED ? 'done' : 'skipped';
  }

  private async resume({ tenantId, actor }: ClaimedBulk, taskId: string): Promise<ActionOutcome> {
    if (!(await this.runs.resume(tenantId, taskId, actor))) return 'skipped';
    this.dispatcher.refill();
    return 'done';
  }

  private async continueFailed(
    { tenantId, caller, actor }: ClaimedBulk,
    taskId: string,
  ): Promise<ActionOutcome> {
    await this.forks.continueFailed({ ...caller, tenantId }, taskId, actor);
    return 'done';
  }

  /** The new task has an id that is computed, so that it is made once. */
  private async sendAgain({ tenantId, id, caller }: ClaimedBulk, taskId: string): Promise<ActionOutcome> {
    const stored = await this.tasks.get(tenantId, taskId, { artifacts: false });
    if (!stored) return 'skipped';
    const agent = await this.agents.find(tenantId, stored.agentId);
    if (!agent || agent.status) {
      throw new ProtocolError('agent-not-found', 'its agent no longer exists or is disabled');
    }
    const { message, details } = await this.firstRequests.repeatFor(tenantId, wellFormed(stored.task));
    const newId = uuidOf(taskId, id);
    await this.acceptance.ensureTask({
      tenantId,
      owner: caller.principal.key,
      agent,
      task: newTask(message, { id: newId, contextId: stored.task.contextId }),
      ...(details && { details }),
    });
    return 'done';
  }

  private async delete({ tenantId }: ClaimedBulk, taskId: string): Promise<ActionOutcome> {
    if (await this.retention.deleteTask(tenantId, taskId)) return 'done';
    const now = await this.tasks.get(tenantId, taskId, { historyLength: 0, artifacts: false });
    // A worker may have deleted it and died.
    return now && !isTerminal(now.task.status?.state ?? TaskState.TASK_STATE_UNSPECIFIED)
      ? 'skipped'
      : 'done';
  }
}
