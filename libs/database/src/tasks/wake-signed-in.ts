import { TaskState } from '@baton/a2a';
import type { Database, Statement } from '../connection/database.js';
import { keyOfTenant } from '../connection/row-security.js';

/** $1 tenant $2 task */
const WAKE_SIGNED_IN: Statement = {
  name: 'task-wake-signed-in',
  text: `
UPDATE tasks t SET wakes_at = clock_timestamp()
WHERE t.tenant_id = ${keyOfTenant('$1')} AND t.id = $2::uuid AND t.state = ${TaskState.TASK_STATE_AUTH_REQUIRED} AND t.wakes_at IS NOT NULL
  AND NOT EXISTS (SELECT FROM oauth_sign_ins s WHERE s.tenant_id = ${keyOfTenant('$1')} AND s.task_id = t.id)`,
};

/** The caller of a task may have signed in just before the task has asked for it: the sweep lets it continue then. */
export async function wakeSignedIn(database: Database, tenantId: string, taskId: string): Promise<void> {
  await database.tenantQuery(tenantId, WAKE_SIGNED_IN, [tenantId, taskId]);
}
