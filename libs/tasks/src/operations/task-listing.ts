import {
  canSee,
  ProtocolError,
  type Reacher,
  type RequestDetails,
  type TaskState,
  visibleTasks,
  writableTasks,
} from '@baton/a2a';
import { approvalsOf } from '@baton/agents';
import { Environment } from '@baton/config';
import {
  type Ancestor,
  type ConsoleLineRecord,
  ConsoleLineStore,
  type Descendant,
  JournalStore,
  type ModelCallRecord,
  type OpenVersion,
  type StepRecord,
  type TaskRelations,
  TaskTreeStore,
  type RunErrorRecord,
  type RunRecord,
  RunStore,
  type StoredTask,
  TaskStore,
  type AgentTimes,
  type TimedTasks,
  type UsageFilter,
  UsageHoursStore,
  type UsageKey,
  type UsageReport,
  type WaitingTask,
} from '@baton/database';
import { Injectable } from '@nestjs/common';
import { LIVE_LEASES } from '../platform/worker-watch.js';
import { mayAnswer } from './approval-rights.js';

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

/** Calls of models of one task that are shown. */
const MAX_MODEL_CALLS = 100;
/** Events of one page of times. */
const MAX_TIMES = 1_000;
/** Maximum number of tasks of one search. */
const MAX_SEARCHED = 10_000;
/** Tasks of one state that are counted. */
const MAX_COUNTED = 1_000;
/** Pages of waiting tasks that one call looks at: the caller may not be allowed to answer any of them. */
const MAX_WAITING_PAGES = 5;
/** Tenants that an error names. */
const MAX_NAMED = 10;

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

const seenBy = (caller: Reacher & { tenantId: string }) => ({
  tenantId: caller.tenantId,
  own: visibleTasks(caller),
  agentIds: caller.agents?.ids,
});

/** The tasks of all agents of a tenant, newest status first. */
@Injectable()
export class TaskListing {
  constructor(
    private readonly tasks: TaskStore,
    private readonly taskTree: TaskTreeStore,
    private readonly runStore: RunStore,
    private readonly hours: UsageHoursStore,
    private readonly journals: JournalStore,
    private readonly consoles: ConsoleLineStore,
    private readonly environment: Environment,
  ) {}

  /** What the caller sees. */
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
   * What the caller sees with a text (`TaskStore.search`). It looks at 10,000 tasks at most.
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

  /** Usage of the tasks that the caller sees, including deleted ones. */
  async usage(
    caller: Reacher & { tenantId: string },
    by: UsageKey,
    filter: Pick<UsageFilter, 'agentId' | 'since' | 'until'>,
  ): Promise<UsageReport> {
    return this.hours.report(by, { ...seenBy(caller), ...filter });
  }

  /** How long the newest ended tasks of these agents have taken. Empty for a caller who sees its own tasks alone: no index finds those. */
  async agentTimes(
    caller: Reacher & { tenantId: string },
    { agentIds, ...time }: Omit<TimedTasks, 'tenantId'>,
  ): Promise<AgentTimes[]> {
    const { tenantId, own, agentIds: seen } = seenBy(caller);
    if (own) return [];
    const asked = seen ? agentIds.filter((id) => seen.includes(id)) : agentIds;
    return this.hours.agentTimes({ tenantId, agentIds: asked, ...time });
  }

  /** One task of the tenant without its contents, and the last error in its agent's code. Undefined: there is none. */
  async summary(
    tenantId: string,
    taskId: string,
  ): Promise<{ stored: StoredTask; error: RunErrorRecord | undefined } | undefined> {
    const stored = await this.tasks.get(tenantId, taskId, { historyLength: 0, artifacts: false });
    return stored && { stored, error: await this.lastError(tenantId, taskId) };
  }

  /**
   * The tenant that has the task. Throws `not-found` if none has it, and `invalid-params` if several have it.
   * @returns its slug
   */
  async tenantOf(taskId: string): Promise<string> {
    const [slug, ...others] = await this.tasks.tenantsOf(taskId);
    if (slug === undefined)
      throw new ProtocolError('not-found', 'There is no such task, or retention has deleted it');
    if (others.length === 0) return slug;
    throw ProtocolError.invalidParams(
      'id',
      `is the id of tasks of the tenants ${[slug, ...others].slice(0, MAX_NAMED).join(', ')}: name the tenant, too`,
    );
  }

  /** The parent and the children of a task. */
  async relations(tenantId: string, taskId: string): Promise<TaskRelations> {
    return this.taskTree.find(tenantId, taskId);
  }

  /** The tasks below a task that the caller sees, the nearest first, at most 500 (`TaskTreeStore.descendants`). */
  async descendants(caller: Reacher & { tenantId: string }, taskId: string): Promise<Descendant[]> {
    const all = await this.taskTree.descendants(caller.tenantId, taskId);
    return all.filter((each) => canSee(caller, each));
  }

  /** Metadata and configuration of the first request of a task that the caller sees. */
  async firstDetails(tenantId: string, taskId: string): Promise<RequestDetails | undefined> {
    return this.tasks.firstDetails(tenantId, taskId);
  }

  /** The open tasks of an agent by the version or code with which they have begun, of all principals in the tenant. */
  async openByVersion(tenantId: string, agent: { id: string; slug: string }): Promise<OpenVersion[]> {
    return this.runStore.openByVersion(tenantId, agent, this.environment.leaseMs * LIVE_LEASES);
  }

  /** The newest runs of a task, at most 100, the newest first. */
  async runs(tenantId: string, taskId: string): Promise<RunRecord[]> {
    return this.runStore.ofTask(tenantId, taskId);
  }

  /** The last error in the agent's code during the task, for the agent's author. */
  async lastError(tenantId: string, taskId: string): Promise<RunErrorRecord | undefined> {
    return this.runStore.lastError(tenantId, taskId);
  }

  /** Console output of the agent's code during the task, for the agent's author. */
  async consoleLines(
    tenantId: string,
    taskId: string,
    page: { after: number; limit: number },
  ): Promise<ConsoleLineRecord[]> {
    return this.consoles.read(tenantId, taskId, page);
  }

  /**
   * When the events after a sequence were stored, in order, at most 1,000. The events themselves do not say it.
   * @returns `more`: whether there may be further ones
   */
  async eventTimes(
    tenantId: string,
    taskId: string,
    after: number,
  ): Promise<{ times: { sequence: number; at: Date }[]; more: boolean }> {
    const times = await this.tasks.eventTimes(tenantId, taskId, after, MAX_TIMES);
    return { times, more: times.length === MAX_TIMES };
  }

  /** The newest calls of models for the task, at most 100, the oldest of them first. */
  async modelCalls(tenantId: string, taskId: string): Promise<ModelCallRecord[]> {
    return this.journals.modelCalls(tenantId, taskId, MAX_MODEL_CALLS);
  }

  /** The durable steps of the task, for the agent's author. */
  async steps(tenantId: string, taskId: string): Promise<StepRecord[]> {
    return this.journals.steps(tenantId, taskId);
  }
}
