import { detailsFromJson, isUuid, type RequestDetails } from '@baton/a2a';
import type { Database, Statement } from '../connection/database.js';

/** $1 tenant $2 task */
const FIRST_REQUEST: Statement = {
  name: 'task-first-request',
  text: `
SELECT request FROM task_messages WHERE tenant_id = $1 AND task_id = $2 ORDER BY sequence LIMIT 1`,
};

/** The request that began the task, without its message. Undefined: there is no such message. */
export async function firstDetails(
  database: Database,
  tenantId: string,
  taskId: string,
): Promise<RequestDetails | undefined> {
  if (!isUuid(taskId)) return undefined;
  const values = [tenantId, taskId];
  const [row] = await database.tenantQuery<{ request: object | null }>(tenantId, FIRST_REQUEST, values);
  return row && detailsFromJson(row.request);
}
