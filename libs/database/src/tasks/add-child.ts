import type { Transaction } from '../connection/database.js';
import { keyOfTenant } from '../connection/row-security.js';
import { type Inputs, one, statement } from '../sql/statement.js';
import { ParentOverError } from './parent-over-error.js';
import type { NewChild } from './task-records.js';
import { TooManyChildrenError } from './too-many-children-error.js';

interface AddedChildRow {
  /** How many tasks there are below the root, this one included. */
  tasks: number;
}

const CHILD = {
  tenant_id: ['uuid', ({ tenantId }) => tenantId],
  id: ['uuid', ({ taskId }) => taskId],
  parent_id: ['uuid', ({ parent }) => parent.taskId],
  parent_run_id: ['uuid', ({ parent }) => parent.runId],
  parent_attempt: ['int', ({ parent }) => parent.attempt],
  root_id: ['uuid', ({ rootTaskId }) => rootTaskId],
} satisfies Inputs<NewChild & { tenantId: string; taskId: string }>;

/**
 * Makes a task that this transaction has written a child, if the run still owns the parent. A transaction that ends the parent
 * waits here, or came before. A transaction that holds the root waits for no other task, so locking it second makes no deadlock.
 */
const ADD_CHILD = statement(
  'task-add-child',
  { child: one(CHILD) },
  ({ child }) => `
WITH parent AS (
  SELECT id, owner FROM tasks WHERE tenant_id = ${keyOfTenant(child.tenant_id)} AND id = ${child.parent_id}
    AND active_run_id = ${child.parent_run_id} AND attempt = ${child.parent_attempt} FOR UPDATE
), counted AS (
  UPDATE tasks t SET child_tasks = t.child_tasks + 1
  FROM parent WHERE t.tenant_id = ${keyOfTenant(child.tenant_id)} AND t.id IN (${child.parent_id}, ${child.root_id})
  RETURNING t.id, t.child_tasks
), child AS (
  UPDATE tasks t SET parent_task_id = ${child.parent_id}, owner = parent.owner FROM parent
  WHERE t.tenant_id = ${keyOfTenant(child.tenant_id)} AND t.id = ${child.id}
)
SELECT max(child_tasks) AS tasks FROM counted HAVING count(*) > 0`,
);

/**
 * Makes a new task the child of another one. It locks the parent: either the end of the parent finds the child, or the child finds
 * that the parent has ended.
 * @throws ParentOverError, TooManyChildrenError
 */
export async function addChild(
  transaction: Transaction,
  child: NewChild & { tenantId: string; taskId: string },
): Promise<void> {
  const [added] = await transaction.query<AddedChildRow>(ADD_CHILD, ADD_CHILD.values({ child }));
  if (!added) throw new ParentOverError();
  if (added.tasks > child.maxTasks) throw new TooManyChildrenError();
}
