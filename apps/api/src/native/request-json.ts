import type { Family, RunErrorRecord } from '@baton/database';
import { type StreamItem, StreamResponse, Task, type TaskState, taskStateToJSON } from '@baton/a2a';

/** A task as a request, in short. */
export const encodeRequest = (task: Task, agentId: string): Record<string, unknown> => ({
  request_id: task.id,
  agent_id: agentId,
  context_id: task.contextId,
  state: task.status && stateName(task.status.state),
  updated_at: task.status?.timestamp,
});

/** The same with its place among tasks that agents have handed on, and the whole task in the JSON of A2A 1.0. */
export const encodeRequestWithTask = (
  task: Task,
  agentId: string,
  { parentTaskId, childTaskIds, agentVersion }: Family,
): Record<string, unknown> => ({
  ...encodeRequest(task, agentId),
  agent_version: agentVersion,
  parent_id: parentTaskId,
  child_ids: childTaskIds,
  task: Task.toJSON(task),
});

/**
 * An error in an agent's code. Its stack and its console are for those who may change agents: they show what the code
 * looks like inside.
 */
export const encodeRunError = (
  { runId, attempt, at, message, stack, output = [] }: RunErrorRecord,
  isAuthor: boolean,
): Record<string, unknown> => ({
  ...{ run_id: runId, attempt, at, message },
  ...(isAuthor && { stack: stack ?? null, output }),
});

/** One event of the log: the StreamResponse of A2A 1.0 as JSON, with its sequence as `seq`. */
export const encodeEvent = ({ sequence, payload }: StreamItem): string =>
  JSON.stringify({ seq: sequence, ...(StreamResponse.toJSON({ payload }) as object) });

/** `TASK_STATE_INPUT_REQUIRED` is `input-required`. */
export const stateName = (state: TaskState): string =>
  taskStateToJSON(state).replace('TASK_STATE_', '').toLowerCase().replaceAll('_', '-');
