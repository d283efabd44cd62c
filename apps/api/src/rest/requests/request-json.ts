import { Artifact, ProtocolError, type StreamItem, StreamResponse, Task, stateName } from '@baton/a2a';
import type { ArtifactPosition, TaskRelations, PageOfArtifacts, RunErrorRecord } from '@baton/tasks';

/** A task as a request, in short. */
export const encodeRequest = (task: Task, agentId: string): Record<string, unknown> => ({
  request_id: task.id,
  agent_id: agentId,
  context_id: task.contextId,
  state: task.status && stateName(task.status.state),
  updated_at: task.status?.timestamp,
});

/** The same with its parent and children, and the whole task in the JSON of A2A 1.0. */
export const encodeRequestWithTask = (
  task: Task,
  agentId: string,
  { owner, parentTaskId, childTaskIds, agentVersion }: TaskRelations,
): Record<string, unknown> => ({
  ...encodeRequest(task, agentId),
  owner,
  agent_version: agentVersion,
  parent_id: parentTaskId,
  child_ids: childTaskIds,
  task: Task.toJSON(task),
});

/**
 * An error in an agent's code. Stack and console are only for callers who may change agents, because they show the
 * code.
 */
export const encodeRunError = (
  { runId, attempt, at, message, stack, output = [] }: RunErrorRecord,
  isAuthor: boolean,
): Record<string, unknown> => ({
  ...{ run_id: runId, attempt, at, message },
  ...(isAuthor && { stack: stack ?? null, output }),
});

/** One page of a task's artifacts, each in the JSON of A2A 1.0. */
export const encodeArtifactPage = (
  id: string,
  { head, pieces, next }: PageOfArtifacts,
): Record<string, unknown> => ({
  request_id: id,
  as_of_event: head,
  artifacts: pieces.map(({ append, artifact }) => ({ append, artifact: Artifact.toJSON(artifact) })),
  next_cursor: next ? encodeCursor(next) : null,
});

const encodeCursor = ({ head, after }: ArtifactPosition): string =>
  Buffer.from(`${head}.${after}`).toString('base64url');

/** Decodes a page's `next_cursor`. Throws `invalid-params` for anything else. */
export function readArtifactCursor(cursor: string): ArtifactPosition {
  const [, head, after] = /^(\d{1,10})\.(\d{1,10})$/.exec(Buffer.from(cursor, 'base64url').toString()) ?? [];
  const position = { head: Number(head), after: Number(after) };
  if (position.after < position.head && encodeCursor(position) === cursor) return position;
  throw ProtocolError.invalidParams('cursor', 'must be the next_cursor of an earlier page, or be left out');
}

/** One event of the log: the StreamResponse of A2A 1.0 as JSON, with its sequence as `seq`. */
export const encodeEvent = ({ sequence, payload }: StreamItem): string =>
  JSON.stringify({ seq: sequence, ...(StreamResponse.toJSON({ payload }) as object) });
