import { type CallContext, canSee, isTerminal } from '@baton/a2a';
import { replayRequest, type TurnRequest } from '@baton/agents';
import { JournalStore, TaskStore } from '@baton/database';
import { Injectable } from '@nestjs/common';
import { newContextOf } from '../turns/turn-acceptance.js';
import { TaskFinder } from './task-finder.js';

/** As many as a turn gets. */
const EARLIER_TASKS = 16;

/** What a replay of the steps of a task needs, so that new code can be tried before it is deployed. */
@Injectable()
export class TaskReplays {
  constructor(
    private readonly tasks: TaskStore,
    private readonly journals: JournalStore,
    private readonly finder: TaskFinder,
  ) {}

  /**
   * What the process of the agent would get now, with the recorded steps.
   * @returns undefined if there is nothing to replay: no recorded steps, a task that has ended, or one that is too large to be read whole
   */
  async of(call: CallContext, id: string): Promise<TurnRequest | undefined> {
    const { task, truncation } = await this.finder.find(call, id);
    if (truncation || !task.status || isTerminal(task.status.state)) return undefined;
    const { tenantId, agent } = call;
    if (agent.definition.runtime !== 'executor') return undefined;
    const { contextId } = task;
    const [entries, details, earlier] = await Promise.all([
      this.journals.read(tenantId, task.id),
      this.tasks.firstDetails(tenantId, task.id),
      contextId === newContextOf(task.id)
        ? []
        : this.tasks.listContext(tenantId, agent.id, contextId, task.id, EARLIER_TASKS),
    ]);
    return replayRequest({
      tenantId,
      agent,
      task,
      details: details ?? { metadata: undefined, configuration: undefined },
      // An agent gets the tasks of all callers in the context, the caller of this one only those that it sees.
      earlierTasks: earlier.filter((stored) => canSee(call, stored)).map((stored) => stored.task),
      entries,
    });
  }
}
