import { isInterrupted, type TaskState, taskStateToJSON, TaskStatus } from '@baton/a2a';
import type { Statement, Values } from '../connection/database.js';
import { firstMessage } from './first-message.js';
import { type ListedTasks, matching, ofOwners, TENANT } from './listed-tasks.js';
import { readTasks, type TaskReads } from './read-tasks.js';
import type { StoredTask, TaskFilter } from './task-records.js';
import { ALL_STATES, taskColumns, type TaskRow } from './task-row.js';

/** A task that waits for an answer. */
export interface WaitingTask extends StoredTask {
  /** The task whose agent has begun this one, and its status; undefined = a caller or a schedule has begun it. */
  parent?: { taskId: string; status: TaskStatus };
}

type WaitingRow = TaskRow & {
  parent_task_id: string | null;
  /** Null = the parent was deleted. */
  parent_state: TaskState | null;
  parent_status: object | null;
};

const WAITING_STATES = ALL_STATES.filter(isInterrupted);

/** SQL: whether a status is so small that a list shows it. */
const isSmall = (status: string): string => `pg_column_size(${status}) <= ${64 * 1024}`;

/** A task that another agent has begun waits for that agent. If it asks for an approval, it waits for a person. */
const MAY_WAIT_FOR_A_PERSON = `(t.parent_task_id IS NULL OR ${isSmall('t.status')} AND t.status::text LIKE '%"approval"%')`;

/**
 * The statement that reads a page of the tasks that wait for an answer, the oldest first. It reads each state from an index in this
 * order, and then the rows of the page.
 */
function waitingStatement(filter: ListedTasks & Pick<TaskFilter, 'after' | 'pageSize'>): [Statement, Values] {
  const where = matching(filter, 'id');
  where.add(MAY_WAIT_FOR_A_PERSON);
  if (filter.after) {
    const { statusAt, taskId } = filter.after;
    where.add(`(t.status_at, t.id) > (${where.value(statusAt)}::timestamptz, ${where.value(taskId)}::uuid)`);
  }
  const limit = where.value(filter.pageSize + 1);
  const columns = taskColumns('0', false, 'list');
  const oldest = (state: TaskState): string =>
    ofOwners(
      filter,
      where,
      (conditions) => `(SELECT t.status_at, t.id FROM tasks t
      WHERE ${conditions} AND t.state = ${state} ORDER BY t.status_at, t.id LIMIT ${limit})`,
    );
  const states = WAITING_STATES.filter((state) => filter.state === undefined || filter.state === state);
  const found = states.map(oldest).join(' UNION ALL ');
  const text = `SELECT ${columns}, t.created_at, ${firstMessage()} AS first_message,
    t.parent_task_id, p.state AS parent_state, CASE WHEN ${isSmall('p.status')} THEN p.status END AS parent_status
  FROM (SELECT id FROM (${found}) found ORDER BY status_at, id LIMIT ${limit}) page
  JOIN tasks t ON t.tenant_id = ${TENANT} AND t.id = page.id
  LEFT JOIN tasks p ON p.tenant_id = ${TENANT} AND p.id = t.parent_task_id
  ORDER BY t.status_at, t.id`;
  return [{ text }, where.values];
}

/**
 * Tasks that wait for an answer, the oldest first, without their contents. It has a task that another agent has begun only if that
 * task may ask for an approval.
 * @param filter.state with a state that does not wait, the list is empty
 * @returns `more`: whether there are further ones
 */
export async function listWaitingTasks(
  on: TaskReads,
  filter: ListedTasks & Pick<TaskFilter, 'after' | 'pageSize'>,
): Promise<{ tasks: WaitingTask[]; more: boolean }> {
  const { tenantId, state, pageSize } = filter;
  if (state !== undefined && !isInterrupted(state)) return { tasks: [], more: false };
  const [statement, values] = waitingStatement(filter);
  const rows = await on.database.lists.tenantQuery<WaitingRow>(tenantId, statement, values);
  const parents = new Map(rows.map((row) => [row.id, parentOf(row)]));
  const tasks = await readTasks(on, rows.slice(0, pageSize), { tenantId, historyLength: 0 });
  return {
    tasks: tasks.map((stored) => {
      const parent = parents.get(stored.task.id);
      return parent ? { ...stored, parent } : stored;
    }),
    more: rows.length > pageSize,
  };
}

function parentOf({
  parent_task_id: taskId,
  parent_state: state,
  parent_status: stored,
}: WaitingRow): WaitingTask['parent'] {
  if (taskId === null) return undefined;
  const status = TaskStatus.fromJSON({ ...(state !== null && { state: taskStateToJSON(state) }), ...stored });
  return { taskId, status };
}
