import { type Agent, type Message, ProtocolError, Role, type Task, TaskState } from '@baton/a2a';
import { Environment } from '@baton/config';
import { type Schedule, TaskStore } from '@baton/database';
import { Injectable } from '@nestjs/common';
import { v5 as uuidOf, v7 as uuid } from 'uuid';
import { AgentDirectory } from '../catalog/agent-directory.js';
import { TurnEnds } from '../turns/turn-ends.js';
import { RunDispatcher } from '../dispatch/run-dispatcher.js';
import { ensureTask, explainQuota } from '../turns/ensure-task.js';
import { isBusy } from './firing-plan.js';

/** The key of a task's metadata that says which schedule has made it. */
const METADATA_KEY = 'baton.schedule';

/** The id of the task that a time of a schedule makes: the same, whoever makes it. */
export const taskIdAt = ({ id }: Schedule, dueAt: Date): string => uuidOf(dueAt.toISOString(), id);

/** Makes the tasks of schedules. */
@Injectable()
export class ScheduleFiring {
  constructor(
    private readonly tasks: TaskStore,
    private readonly directory: AgentDirectory,
    private readonly dispatcher: RunDispatcher,
    private readonly turnEnds: TurnEnds,
    private readonly environment: Environment,
  ) {}

  /**
   * Say the schedule's message to its agent as that task, unless it is there already, and cancel the one before
   * if the schedule wants that.
   * @throws ProtocolError if the agent or a limit of the tenant does not allow it
   */
  async fire(schedule: Schedule, dueAt: Date, taskId: string): Promise<void> {
    const { tenantId, lastTaskId, overlap, pendingAt } = schedule;
    // Whoever began it may have made the task and died; what has become of the agent since does not matter then.
    const isThere = async (): Promise<boolean> =>
      (await this.tasks.get(tenantId, taskId, { historyLength: 0, artifacts: false })) !== undefined;
    if (!pendingAt || !(await isThere())) await this.make(schedule, dueAt, taskId);
    // After the new one is there: one that is refused must not end the one before.
    if (overlap === 'cancel-previous' && lastTaskId !== null && isBusy(schedule)) {
      await this.turnEnds.cancel(tenantId, null, lastTaskId);
    }
  }

  private async make(schedule: Schedule, dueAt: Date, taskId: string): Promise<void> {
    const { tenantId } = schedule;
    const agent = await this.agentOf(schedule);
    const quota = await this.dispatcher.quotaFor(tenantId);
    const maker = {
      tasks: this.tasks,
      maxAttempts: this.environment.maxAttempts,
      enqueue: this.dispatcher.enqueue.bind(this.dispatcher),
    };
    const task = newTask(schedule, dueAt, taskId);
    await ensureTask(maker, { tenantId, agent, task, quota }).catch(explainQuota(quota));
  }

  private async agentOf({ tenantId, agent: name }: Schedule): Promise<Agent> {
    const agent = await this.directory.find(tenantId, name);
    if (!agent) throw new ProtocolError('agent-not-found', `the agent "${name}" does not exist`);
    if (agent.closed) throw new ProtocolError('agent-not-found', `the agent "${name}" is ${agent.closed}`);
    return agent;
  }
}

function newTask(schedule: Schedule, dueAt: Date, id: string): Task {
  const contextId = schedule.context === 'same' ? schedule.id : uuid();
  const said: Message = {
    ...schedule.message,
    ...{ messageId: uuid(), taskId: id, contextId, role: Role.ROLE_USER },
  };
  const timestamp = new Date().toISOString();
  return {
    id,
    contextId,
    status: { state: TaskState.TASK_STATE_SUBMITTED, message: undefined, timestamp },
    artifacts: [],
    history: [said],
    metadata: { [METADATA_KEY]: { id: schedule.id, name: schedule.name, dueAt: dueAt.toISOString() } },
  };
}
