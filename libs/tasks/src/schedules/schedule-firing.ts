import {
  type Agent,
  ProtocolError,
  Role,
  type Task,
  partsWithoutReserved,
  schedulePrincipal,
  wellFormed,
  withoutReserved,
} from '@baton/a2a';
import type { Schedule } from '@baton/database';
import { Injectable } from '@nestjs/common';
import { v5 as uuidOf } from 'uuid';
import { AgentDirectory } from '../catalog/agent-directory.js';
import { TurnEnds } from '../turns/turn-ends.js';
import { TurnAcceptance } from '../turns/turn-acceptance.js';
import { newTask } from '../turns/new-task.js';
import { isBusy } from './firing-plan.js';

/** The task's metadata names its schedule under this key. */
const METADATA_KEY = 'baton.schedule';

/** The id of the task for one time of a schedule. Every worker computes the same id. */
export const taskIdAt = ({ id }: Schedule, dueAt: Date): string => uuidOf(dueAt.toISOString(), id);

/** Makes the tasks of schedules. */
@Injectable()
export class ScheduleFiring {
  constructor(
    private readonly directory: AgentDirectory,
    private readonly acceptance: TurnAcceptance,
    private readonly turnEnds: TurnEnds,
  ) {}

  /**
   * Create the task with the schedule's message, unless it exists. Then cancel the previous task if the schedule's
   * `overlap` is `cancel-previous`.
   * @throws ProtocolError if the agent or a limit of the tenant does not allow it
   */
  async fire(schedule: Schedule, dueAt: Date, taskId: string): Promise<void> {
    const { tenantId, lastTaskId, overlap, pendingAt } = schedule;
    // A worker may have created the task and died. Then it does not matter whether the agent still exists.
    if (!pendingAt || !(await this.acceptance.exists(tenantId, taskId))) {
      const agent = await this.agentOf(schedule);
      const owner = schedule.owner ?? schedulePrincipal(schedule.id).key;
      await this.acceptance.ensureTask({ tenantId, owner, agent, task: taskOf(schedule, dueAt, taskId) });
    }
    // Only after the new task exists: a refused one must not end the previous one.
    if (overlap === 'cancel-previous' && lastTaskId !== null && isBusy(schedule)) {
      await this.turnEnds.cancel(tenantId, null, lastTaskId);
    }
  }

  private async agentOf({ tenantId, agent: name }: Schedule): Promise<Agent> {
    const agent = await this.directory.find(tenantId, name);
    if (!agent) throw new ProtocolError('agent-not-found', `the agent "${name}" does not exist`);
    if (agent.status) throw new ProtocolError('agent-not-found', `the agent "${name}" is ${agent.status}`);
    return agent;
  }
}

function taskOf(schedule: Schedule, dueAt: Date, id: string): Task {
  const { id: scheduleId, name } = schedule;
  // Earlier releases have stored text that is not well-formed Unicode.
  const message = wellFormed(schedule.message);
  const firing = {
    ...message,
    messageId: '',
    role: Role.ROLE_USER,
    metadata: withoutReserved(message.metadata),
    parts: partsWithoutReserved(message.parts),
  };
  return newTask(firing, {
    id,
    contextId: schedule.context === 'same' ? scheduleId : undefined,
    metadata: { [METADATA_KEY]: { id: scheduleId, name, dueAt: dueAt.toISOString() } },
  });
}
