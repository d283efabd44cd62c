import { isTerminal, type Task, TaskState } from '@baton/a2a';
import { type Elicitations, textOf } from './elicitations.js';
import type { CallToolResult } from './tool-result.js';

const DAY_MS = 86_400_000;
/** Clients that cannot listen ask this often while the agent works. Most turns end within seconds. */
const WORKING_POLL_MS = 1_000;
/** They ask this often while the task waits for a person, who takes longer to answer. */
const WAITING_POLL_MS = 5_000;

const STATUSES: Partial<Record<TaskState, string>> = {
  [TaskState.TASK_STATE_INPUT_REQUIRED]: 'input_required',
  [TaskState.TASK_STATE_AUTH_REQUIRED]: 'input_required',
  [TaskState.TASK_STATE_COMPLETED]: 'completed',
  // `failed` is for JSON-RPC errors alone: these have a result with `isError`.
  [TaskState.TASK_STATE_FAILED]: 'completed',
  [TaskState.TASK_STATE_REJECTED]: 'completed',
  [TaskState.TASK_STATE_CANCELED]: 'cancelled',
};

/** A task of the extension `io.modelcontextprotocol/tasks`, without what depends on its status. */
export function mcpTask(task: Task, retentionDays: number | null): Record<string, unknown> {
  const { id, status } = task;
  const state = status?.state ?? TaskState.TASK_STATE_UNSPECIFIED;
  const name = STATUSES[state] ?? 'working';
  const lastUpdatedAt = status?.timestamp ?? new Date(0).toISOString();
  const createdAt = createdAtOf(id) ?? lastUpdatedAt;
  const statusMessage = status ? textOf(status, 1_000) : '';
  // Retention counts from the end of a task.
  const isKept = retentionDays === null || !isTerminal(state);
  const keptMs = isKept ? null : Date.parse(lastUpdatedAt) + retentionDays * DAY_MS - Date.parse(createdAt);
  return {
    taskId: id,
    status: name,
    ...(statusMessage !== '' && { statusMessage }),
    createdAt,
    lastUpdatedAt,
    ttlMs: keptMs,
    pollIntervalMs: name === 'input_required' ? WAITING_POLL_MS : WORKING_POLL_MS,
  };
}

/** A task of the extension with its result, or with the questions that it waits for. */
export function detailedTask(
  task: Task,
  {
    retentionDays,
    result,
    elicitations,
  }: { retentionDays: number | null; result: CallToolResult; elicitations: Elicitations },
): Record<string, unknown> {
  const common = mcpTask(task, retentionDays);
  if (common.status === 'completed') return { ...common, result: { resultType: 'complete', ...result } };
  if (common.status === 'input_required') return { ...common, inputRequests: elicitations };
  return common;
}

/** The ids of tasks are UUIDs of version 7, which begin with the time. */
function createdAtOf(id: string): string | undefined {
  const [, high, low] = /^([\da-f]{8})-([\da-f]{4})-7/.exec(id) ?? [];
  return high === undefined || low === undefined
    ? undefined
    : new Date(Number.parseInt(high + low, 16)).toISOString();
}
