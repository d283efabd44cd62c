import {
  Artifact,
  markTruncated,
  Message,
  Task,
  taskStateToJSON,
  TaskStatus,
  type Truncation,
} from '@baton/a2a';
import { parkedRunOf } from '../dispatch/parked-run.js';
import { firstMessageOf } from './first-message.js';
import type { SearchHit, SearchPlace, StoredTask } from './task-records.js';
import type { TaskRow } from './task-row.js';

/** The columns of a task's row that never change, and its size. */
export type TaskHead = Pick<
  TaskRow,
  | 'id'
  | 'agent_id'
  | 'owner'
  | 'created_at'
  | 'first_message'
  | 'last_error'
  | 'hit_place'
  | 'hit_text'
  | 'parked'
  | 'context_id'
  | 'metadata'
  | 'metadata_cut'
  | 'last_sequence'
  | 'size'
>;

const hitOf = (place: SearchPlace, text: string | null | undefined): SearchHit => ({
  place,
  ...(text && { text: text.replaceAll(/\s+/g, ' ').trim() }),
});

/** The status of a task's row. */
export type TaskStatusRow = Pick<TaskRow, 'state' | 'status' | 'status_at' | 'outcome'>;

/**
 * A task from its row and its content. A caller that changes the status passes it beside the row, and need not copy the row.
 * @param leftOut of the content; what is left out of the row itself is added
 */
export function storedTask(
  row: TaskHead,
  { state, status: stored, status_at: at, outcome }: TaskStatusRow,
  { history, artifacts }: { history: Message[]; artifacts: Artifact[] },
  leftOut: Truncation = {},
): StoredTask {
  const { id, metadata_cut: metadataCut, last_sequence: sequence } = row;
  const firstMessage = firstMessageOf(row.first_message);
  const parked = row.parked ? parkedRunOf(row.parked) : null;
  // The row has the rest in other columns.
  const status = TaskStatus.fromJSON({
    state: taskStateToJSON(state),
    timestamp: at.toISOString(),
    ...stored,
  });
  const { metadata } = Task.fromJSON({ metadata: row.metadata ?? undefined });
  const task: Task = { id, contextId: row.context_id, status, artifacts, history, metadata };
  const truncation: Truncation = {
    ...leftOut,
    ...(!stored && { statusMessage: true }),
    ...(metadataCut && { metadata: true }),
  };
  return {
    task: markTruncated(task, truncation, { events: sequence, bytes: row.size }),
    sequence,
    agentId: row.agent_id,
    owner: row.owner,
    outcome,
    ...(row.created_at && { createdAt: row.created_at }),
    ...(firstMessage !== undefined && { firstMessage }),
    ...(row.last_error && { lastError: row.last_error }),
    ...(parked && { parked }),
    ...(row.hit_place && { hit: hitOf(row.hit_place, row.hit_text) }),
    ...(Object.keys(truncation).length > 0 && { truncation }),
  };
}
