import {
  type CallContext,
  type GetTaskRequest,
  type ListTasksRequest,
  type ListTasksResponse,
  type Task,
  TaskState,
  decodePageToken,
  encodePageToken,
  visibleTasks,
} from '@baton/a2a';
import { TaskStore } from '@baton/database';
import { Injectable } from '@nestjs/common';
import { TaskFinder } from './task-finder.js';
import { ListTotals } from './list-totals.js';

/** The default of A2A 1.0 (§3.1.4). */
const DEFAULT_PAGE_SIZE = 50;

/** GetTask and ListTasks (A2A 1.0 §3.1.3, §3.1.4). */
@Injectable()
export class ReadOperations {
  constructor(
    private readonly tasks: TaskStore,
    private readonly finder: TaskFinder,
    private readonly totals: ListTotals,
  ) {}

  /** The task at the head of its log. Not found when it is unknown, another tenant's or another agent's. */
  async getTask(call: CallContext, request: GetTaskRequest): Promise<Task> {
    const { historyLength } = request;
    if (call.rules.history === 'task')
      return (
        await this.finder.find(call, request.id, {
          historyLength,
          artifacts: call.rules.artifacts === 'read',
        })
      ).task;
    const { task } = await this.finder.find(call, request.id);
    return this.finder.withHistory(call, task, historyLength);
  }

  /** The agent's tasks that the caller sees, newest status first. */
  async listTasks(call: CallContext, request: ListTasksRequest): Promise<ListTasksResponse> {
    const pageSize = request.pageSize ?? DEFAULT_PAGE_SIZE;
    const listed = {
      tenantId: call.tenantId,
      agentId: call.agent.id,
      own: visibleTasks(call),
      contextId: request.contextId || undefined,
      state: request.status === TaskState.TASK_STATE_UNSPECIFIED ? undefined : request.status,
      since: request.statusTimestampAfter ? new Date(request.statusTimestampAfter) : undefined,
    };
    const known = this.totals.known(listed);
    const { tasks, total, more } = await this.tasks.list({
      ...listed,
      uncounted: known !== undefined,
      mayLag: true,
      pageSize,
      after: request.pageToken ? decodePageToken(request.pageToken) : undefined,
      historyLength: request.historyLength,
      includeArtifacts: request.includeArtifacts ?? false,
      memory: call.memory,
    });
    const last = tasks.at(-1)?.task;
    const nextPageToken =
      more && last?.status?.timestamp
        ? encodePageToken({ statusAt: new Date(last.status.timestamp), taskId: last.id })
        : '';
    const totalSize = known ?? total ?? (await this.totals.total(listed));
    return { tasks: tasks.map(({ task }) => task), nextPageToken, pageSize, totalSize };
  }
}
