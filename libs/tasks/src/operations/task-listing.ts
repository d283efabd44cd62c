import { type Reacher, type TaskState, writableTasks } from '@baton/a2a';
import { approvalsOf } from '@baton/agents';
import { type Ancestor, type StoredTask, TaskStore, TaskTreeStore, type WaitingTask } from '@baton/database';
import { Injectable } from '@nestjs/common';
import { mayAnswer } from './approval-rights.js';
import { seenBy } from './seen-by.js';

/** The end of a page of tasks: the next page begins after this task. */
export interface TaskListPosition {
  statusAt: Date;
  taskId: string;
}

/** Which tasks are asked for; unset = all. */
export interface TaskListFilter {
  agentId?: string | undefined;
  contextId?: string | undefined;
  state?: TaskState | undefined;
  /** Status not older than this. */
  since?: Date | undefined;
  /** Status older than this. */
  until?: Date | undefined;
  /** Key of the principal that has made it. */
  owner?: string | undefined;
  /** True: only tasks that are parked. */
  parked?: boolean | undefined;
}

/** Maximum number of tasks of one search. */
const MAX_SEARCHED = 10_000;
/** Tasks of one state that are counted. */
const MAX_COUNTED = 1_000;
/** Pages of waiting tasks that one call reads: the caller may not be allowed to answer any of them. */
const MAX_WAITING_PAGES = 5;

/** A task that waits for an answer which the caller may give. */
export interface AnswerableTask extends StoredTask {
  /** For a task that another agent has begun: the tasks above it that the caller sees, the nearest first. */
  above: Ancestor[];
}

/** Whether a waiting task waits for a person, and not for the agent that has begun it or for the answer at the task above. */
function isForPerson({ task, parent }: WaitingTask): boolean {
  if (!parent) return true;
  const asked = approvalsOf(task.status) ?? [];
  const passedOn = approvalsOf(parent.status) ?? [];
  const isPassedOn = asked.every(({ callId }) => passedOn.some((one) => one.callId.endsWith(`/${callId}`)));
  return asked.length > 0 && !isPassedOn;
}

/** Where a list continues after a task. */
function positionOf(stored: StoredTask | undefined): TaskListPosition | undefined {
  const statusAt = stored?.task.status?.timestamp;
  return stored && statusAt !== undefined
    ? { statusAt: new Date(statusAt), taskId: stored.task.id }
    : undefined;
}

/** The tasks of all agents of a tenant, newest status first. */
@Injectable()
export class TaskListing {
  constructor(
    private readonly tasks: TaskStore,
    private readonly taskTree: TaskTreeStore,
  ) {}

  /** The tasks that the caller sees. */
  async list(
    caller: Reacher & { tenantId: string },
    page: { limit: number; after?: TaskListPosition },
    filter: TaskListFilter = {},
  ): Promise<{ tasks: StoredTask[]; more: boolean }> {
    const { limit, after } = page;
    const shown = {
      historyLength: 0,
      includeArtifacts: false,
      withFirstMessage: true,
      uncounted: true,
      mayLag: true,
    };
    return this.tasks.list({ ...seenBy(caller), ...filter, pageSize: limit, after, ...shown });
  }

  /**
   * The tasks with a text that the caller sees (`TaskStore.search`). It reads 10,000 tasks at most.
   * @returns `searched`: how many it has looked at; `next`: where to continue, if there are more
   */
  async search(
    caller: Reacher & { tenantId: string },
    page: { limit: number; after?: TaskListPosition },
    text: string,
    filter: TaskListFilter = {},
  ): Promise<{ tasks: StoredTask[]; searched: number; next?: TaskListPosition }> {
    const { limit, after } = page;
    const asked = { ...seenBy(caller), ...filter, pageSize: limit, after };
    return this.tasks.search(asked, text, MAX_SEARCHED);
  }

  /** The number of the tasks that the caller sees in each state, counted up to 1,000. */
  async counts(
    caller: Reacher & { tenantId: string },
    filter: TaskListFilter = {},
  ): Promise<ReadonlyMap<TaskState, number>> {
    return this.tasks.countStates({ ...seenBy(caller), ...filter }, MAX_COUNTED);
  }

  /**
   * The tasks that wait for an answer which the caller may give, the oldest first: its own, or all of its tenant with the scopes to
   * write to them. A request for approval is there if the caller may approve it, once: at the task to which agents have passed it on.
   * A question to another agent is not there.
   * @returns a page, which may have fewer tasks than asked for; `next`: where to continue, if there are more
   */
  async answerable(
    caller: Reacher & { tenantId: string },
    page: { limit: number; after?: TaskListPosition },
    filter: TaskListFilter = {},
  ): Promise<{ tasks: AnswerableTask[]; next?: TaskListPosition }> {
    const { tenantId, agents } = caller;
    const asked = { tenantId, own: writableTasks(caller), agentIds: agents?.ids, ...filter };
    const found: WaitingTask[] = [];
    let next = page.after;
    for (let i = 0; i < MAX_WAITING_PAGES; i++) {
      const pageSize = page.limit - found.length;
      const { tasks, more } = await this.tasks.listWaiting({ ...asked, pageSize, after: next });
      found.push(...tasks.filter((waiting) => isForPerson(waiting) && mayAnswer(caller, waiting)));
      next = more ? positionOf(tasks.at(-1)) : undefined;
      if (!next || found.length === page.limit) break;
    }
    const answerable = found.map(async (waiting) => ({
      ...waiting,
      above: await this.above(caller, waiting),
    }));
    return { tasks: await Promise.all(answerable), ...(next && { next }) };
  }

  /** The tasks above a waiting one that the caller sees. Few waiting tasks have any. */
  private async above(
    { tenantId, agents }: Reacher & { tenantId: string },
    { task, parent }: WaitingTask,
  ): Promise<Ancestor[]> {
    if (!parent) return [];
    const [, ...above] = await this.taskTree.ancestors(tenantId, task.id);
    return above.filter(({ agentId }) => agents?.ids.includes(agentId) ?? true);
  }
}
