import { type Reacher, visibleTasks } from '@baton/a2a';
import {
  type TaskRelations,
  TaskTreeStore,
  type RunErrorRecord,
  RunStore,
  type StoredTask,
  TaskStore,
} from '@baton/database';
import { Injectable } from '@nestjs/common';

/** The end of a page of requests: the next page begins after this task. */
export interface RequestPosition {
  statusAt: Date;
  taskId: string;
}

/** The tasks of a tenant, whichever agent they belong to, newest status first. */
@Injectable()
export class RequestListing {
  constructor(
    private readonly tasks: TaskStore,
    private readonly taskTree: TaskTreeStore,
    private readonly runs: RunStore,
  ) {}

  /** What the caller sees. */
  async list(
    caller: Reacher & { tenantId: string },
    page: { limit: number; after?: RequestPosition },
  ): Promise<{ tasks: StoredTask[]; more: boolean }> {
    const { limit, after } = page;
    const shown = { historyLength: 0, includeArtifacts: false, uncounted: true };
    const { tenantId, agents } = caller;
    const seen = { tenantId, own: visibleTasks(caller), agentIds: agents?.ids };
    return this.tasks.list({ ...seen, pageSize: limit, after, ...shown });
  }

  /** One task of the tenant without its contents, and the last error in its agent's code. Undefined: there is none. */
  async summary(
    tenantId: string,
    taskId: string,
  ): Promise<{ stored: StoredTask; error: RunErrorRecord | undefined } | undefined> {
    const stored = await this.tasks.get(tenantId, taskId, { historyLength: 0, artifacts: false });
    return stored && { stored, error: await this.lastError(tenantId, taskId) };
  }

  /** The parent and the children of a task. */
  async relations(tenantId: string, taskId: string): Promise<TaskRelations> {
    return this.taskTree.find(tenantId, taskId);
  }

  /** The last error in the agent's code during the task, for the agent's author. */
  async lastError(tenantId: string, taskId: string): Promise<RunErrorRecord | undefined> {
    return this.runs.lastError(tenantId, taskId);
  }
}
