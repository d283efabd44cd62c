import { isUuid, type ReadMemory } from '@baton/a2a';
import { keyOfTenant } from '../connection/row-security.js';
import { type Inputs, one, statement } from '../sql/statement.js';
import type { StoredTask } from './task-records.js';
import { budgetFor, type TaskReads } from './read-tasks.js';
import { taskColumns, type TaskRow } from './task-row.js';

/** Largest `integer` of Postgres. */
const MAX_INT = 2_147_483_647;

/** The SQL value of a history length; NULL = all. */
export const historyLimit = (length: number | undefined): number | null =>
  length === undefined ? null : Math.min(length, MAX_INT);

interface WantedTask {
  tenantId: string;
  taskId: string;
  /** Messages of the history; unset = all. */
  historyLength?: number | undefined;
}

const TASK = {
  tenant_id: ['uuid', ({ tenantId }) => tenantId],
  id: ['uuid', ({ taskId }) => taskId],
  history_length: ['int', ({ historyLength }) => historyLimit(historyLength)],
} satisfies Inputs<WantedTask>;

const getStatement = (name: string, artifacts: boolean) =>
  statement(
    name,
    { task: one(TASK) },
    ({ task }) => `
SELECT ${taskColumns(task.history_length, artifacts)} FROM tasks t WHERE t.tenant_id = ${keyOfTenant(task.tenant_id)} AND t.id = ${task.id}`,
  );

export const GET = getStatement('task-get', true);
const GET_WITHOUT_ARTIFACTS = getStatement('task-get-without-artifacts', false);

/** The task at the head of its log; snapshot and sequence come from one statement, so neither is older. */
export async function getTask(
  on: TaskReads,
  tenantId: string,
  taskId: string,
  options: { historyLength?: number; artifacts?: boolean; memory?: ReadMemory | undefined } = {},
): Promise<StoredTask | undefined> {
  if (!isUuid(taskId)) return undefined;
  const { historyLength, memory } = options;
  const wanted = options.artifacts === false ? GET_WITHOUT_ARTIFACTS : GET;
  const values = wanted.values({ task: { tenantId, taskId, historyLength } });
  const [row] = await on.database.tenantQuery<TaskRow>(tenantId, wanted, values);
  return row && on.reader.read(tenantId, row, { historyLength, budget: budgetFor(on, [row], memory) });
}
