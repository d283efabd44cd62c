import { type TaskState, textOf, writableTasks } from '@baton/a2a';
import {
  type BulkAction,
  type BulkCaller,
  type BulkCursor,
  type BulkFilter,
  RunStore,
  type StoredTask,
  TaskStore,
} from '@baton/database';
import { Injectable } from '@nestjs/common';
import { ACTION_RULES } from './bulk-actions.js';

/** Tasks that are listed at once. */
const PAGE = 100;

/** The criteria of a search. */
export interface TaskMatch {
  tenantId: string;
  action: BulkAction;
  filter: BulkFilter;
  caller: BulkCaller;
  /** Tasks that are younger, or have ended later, are left alone. */
  asOf: Date;
}

/** Tasks that were found. */
export interface MatchedTasks {
  tasks: StoredTask[];
  /** How many were looked at. */
  searched: number;
  /** Where the next search begins. Null: there are no more. */
  next: BulkCursor | null;
}

/** Finds the tasks of an operation on many tasks, the newest of each state first. */
@Injectable()
export class MatchingTasks {
  constructor(
    private readonly tasks: TaskStore,
    private readonly runs: RunStore,
  ) {}

  /**
   * The next tasks that match.
   * @param cursor null = from the beginning
   * @param most.found it ends when it has found as many, or some more
   * @param most.searched about how many tasks it reads, or some more
   */
  async find(
    match: TaskMatch,
    cursor: BulkCursor | null,
    most: { found: number; searched: number },
  ): Promise<MatchedTasks> {
    const { filter, action } = match;
    const states = ACTION_RULES[action].states.filter((state) => state === (filter.state ?? state));
    const found: StoredTask[] = [];
    let next: BulkCursor = cursor ?? { state: 0 };
    let searched = 0;
    for (let state = states[next.state]; state !== undefined; state = states[next.state]) {
      if (found.length >= most.found || searched >= most.searched) return { tasks: found, searched, next };
      const { tasks, more } = await this.page(match, state, next.after);
      searched += tasks.length;
      found.push(...(await this.matching(match, tasks)));
      const after = more ? positionOf(tasks.at(-1)) : undefined;
      next = after ? { state: next.state, after } : { state: next.state + 1 };
    }
    return { tasks: found, searched, next: null };
  }

  private page(
    { tenantId, filter, caller, action, asOf }: TaskMatch,
    state: TaskState,
    after: BulkCursor['after'],
  ): Promise<{ tasks: StoredTask[]; more: boolean }> {
    const { agentId, contextId, since, until, owner, parked } = filter;
    // The state of an open task may change meanwhile.
    const isOfOpenTasks = action === 'cancel' || action === 'resume';
    const ends = [
      ...(until === undefined ? [] : [Date.parse(until)]),
      ...(isOfOpenTasks ? [] : [asOf.getTime()]),
    ];
    return this.tasks.list({
      tenantId,
      own: writableTasks(caller),
      agentIds: caller.agents?.ids,
      ...(agentId !== undefined && { agentId }),
      ...(contextId !== undefined && { contextId }),
      ...(owner !== undefined && { owner }),
      ...(since !== undefined && { since: new Date(since) }),
      ...(ends.length > 0 && { until: new Date(Math.min(...ends)) }),
      ...((parked ?? action === 'resume') && { parked: true }),
      ...(after && { after: { statusAt: new Date(after.statusAt), taskId: after.taskId } }),
      state,
      pageSize: PAGE,
      historyLength: 0,
      includeArtifacts: false,
      withFirstMessage: true,
      uncounted: true,
    });
  }

  /** The tasks of a page that match criteria without an index. */
  private async matching({ tenantId, filter, asOf }: TaskMatch, tasks: StoredTask[]): Promise<StoredTask[]> {
    const { error, version } = filter;
    const wanted = error?.toLowerCase();
    const old = tasks.filter(
      (stored) =>
        (stored.createdAt ?? asOf) <= asOf &&
        (wanted === undefined || errorOf(stored).toLowerCase().includes(wanted)),
    );
    if (version === undefined || old.length === 0) return old;
    const versions = await this.runs.agentVersions(
      tenantId,
      old.map(({ task }) => task.id),
    );
    return old.filter(({ task }) => versions.get(task.id) === version);
  }
}

/** The status message of a failed task, and the error in its agent's code. */
const errorOf = ({ task, lastError = '' }: StoredTask): string =>
  `${textOf(task.status?.message?.parts ?? [])}\n${lastError}`;

function positionOf(stored: StoredTask | undefined): BulkCursor['after'] {
  const statusAt = stored?.task.status?.timestamp;
  return stored && statusAt !== undefined ? { statusAt, taskId: stored.task.id } : undefined;
}
