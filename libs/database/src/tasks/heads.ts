import { isUuid } from '@baton/a2a';
import type { Database } from '../connection/database.js';
import { keyOfTenant } from '../connection/row-security.js';
import { type Inputs, list, statement } from '../sql/statement.js';

interface TaskKey {
  tenantId: string;
  taskId: string;
}

interface HeadRow {
  id: string;
  last_sequence: number;
}

const TASK = {
  tenant_id: ['uuid', ({ tenantId }) => tenantId],
  task_id: ['uuid', ({ taskId }) => taskId],
} satisfies Inputs<TaskKey>;

const HEADS = statement(
  'task-heads',
  { tasks: list(TASK) },
  ({ tasks }) => `
SELECT k.task_id AS id, coalesce(t.last_sequence, d.last_sequence) AS last_sequence
FROM ${tasks.rows('k')}
LEFT JOIN tasks t ON t.tenant_id = ${keyOfTenant('k.tenant_id')} AND t.id = k.task_id
LEFT JOIN task_tombstones d ON d.tenant_id = k.tenant_id AND d.task_id = k.task_id
WHERE coalesce(t.last_sequence, d.last_sequence) IS NOT NULL`,
);

/**
 * Head sequence of many tasks at once (across tenants), by task id, for the relay's slow tick. A deleted task has the head that it
 * had.
 */
export async function readHeads(database: Database, keys: readonly TaskKey[]): Promise<Map<string, number>> {
  const tasks = keys.filter(({ tenantId, taskId }) => isUuid(tenantId) && isUuid(taskId));
  if (tasks.length === 0) return new Map();
  const rows = await database.systemQuery<HeadRow>(HEADS, HEADS.values({ tasks }));
  return new Map(rows.map(({ id, last_sequence }) => [id, last_sequence]));
}
