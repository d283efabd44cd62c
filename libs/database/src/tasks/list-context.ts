import { isUuid, type ReadMemory } from '@baton/a2a';
import { keyOfTenant } from '../connection/row-security.js';
import { type Inputs, one, statement } from '../sql/statement.js';
import { readTasks, type TaskReads } from './read-tasks.js';
import type { StoredTask } from './task-records.js';
import { taskColumns, type TaskRow } from './task-row.js';

interface WantedContext {
  tenantId: string;
  agentId: string;
  contextId: string;
  /** The task before which they were created. */
  beforeTaskId: string;
  limit: number;
}

const CONTEXT = {
  tenant_id: ['uuid', ({ tenantId }) => tenantId],
  agent_id: ['text', ({ agentId }) => agentId],
  id: ['text', ({ contextId }) => contextId],
  before_id: ['uuid', ({ beforeTaskId }) => beforeTaskId],
  rows: ['int', ({ limit }) => limit],
} satisfies Inputs<WantedContext>;

const LIST_CONTEXT = statement('task-list-context', { context: one(CONTEXT) }, ({ context }) => {
  const before = `FROM tasks WHERE tenant_id = ${keyOfTenant(context.tenant_id)} AND id = ${context.before_id}`;
  return `
SELECT ${taskColumns('NULL::int', true, 'list')} FROM (
  SELECT c.* FROM tasks c
  WHERE c.tenant_id = ${context.tenant_id} AND c.agent_id = ${context.agent_id} AND c.context_key = md5(${context.id})::uuid
    AND c.context_id = ${context.id} AND (c.created_at, c.id) < ((SELECT created_at ${before}), ${context.before_id})
    AND CASE WHEN c.owner IS NULL THEN NOT EXISTS (SELECT ${before} AND owner LIKE 'guest:%')
      ELSE c.owner = (SELECT owner ${before}) END
  ORDER BY c.created_at DESC, c.id DESC LIMIT ${context.rows}
) t ORDER BY t.created_at, t.id`;
});

/**
 * The last `limit` tasks of a context before the task `beforeTaskId`, in any state, the oldest first. Only those of that task's owner:
 * if another principal uses the same context id, that is another conversation. Tasks of earlier releases have no owner. They are in
 * the conversation of every principal but guests.
 */
export async function listContext(
  on: TaskReads,
  tenantId: string,
  agentId: string,
  contextId: string,
  beforeTaskId: string,
  limit: number,
  memory?: ReadMemory,
): Promise<StoredTask[]> {
  if (!isUuid(beforeTaskId)) return [];
  const values = LIST_CONTEXT.values({ context: { tenantId, agentId, contextId, beforeTaskId, limit } });
  const rows = await on.database.tenantQuery<TaskRow>(tenantId, LIST_CONTEXT, values);
  const newestFirst = rows.toReversed();
  return (await readTasks(on, newestFirst, { tenantId, memory })).reverse();
}
