import { type CallContext, canSee, isTerminal } from '@baton/a2a';
import { replayRequest, splitJournal, type TurnRequest } from '@baton/agents';
import { JournalStore, TaskStore } from '@baton/database';
import { Injectable } from '@nestjs/common';
import { EarlierTasks } from '../turns/earlier-tasks.js';
import { TaskFinder } from './task-finder.js';

/** What a replay of the steps of a task needs, so that new code can be tried before it is deployed. */
@Injectable()
export class TaskReplays {
  constructor(
    private readonly tasks: TaskStore,
    private readonly journals: JournalStore,
    private readonly finder: TaskFinder,
    private readonly earlier: EarlierTasks,
  ) {}

  /**
   * What the process of the agent would get now, with the recorded steps.
   * @returns undefined if there is nothing to replay: no recorded steps, a task that has ended, or one that is too large to be read whole
   */
  async build(call: CallContext, id: string): Promise<TurnRequest | undefined> {
    const { task, truncation } = await this.finder.find(call, id);
    if (truncation || !task.status || isTerminal(task.status.state)) return undefined;
    const { tenantId, agent } = call;
    if (agent.definition.runtime !== 'executor') return undefined;
    const { origin, entries } = splitJournal(await this.journals.read(tenantId, task.id));
    const [details, earlier] = await Promise.all([
      this.tasks.firstDetails(tenantId, task.id),
      this.earlier.list(tenantId, agent, task, origin),
    ]);
    return replayRequest({
      tenantId,
      agent,
      task,
      details: details ?? { metadata: undefined, configuration: undefined },
      // An agent gets the tasks of all callers in the context, the caller of this one only those that it sees.
      earlierTasks: earlier.filter((stored) => canSee(call, stored)).map((stored) => stored.task),
      origin,
      entries,
    });
  }
}
