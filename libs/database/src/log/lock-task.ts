import type { Statement } from '../connection/database.js';

/** Other writers of the task wait until the transaction ends: $1 tenant $2 task */
export const LOCK_TASK: Statement = {
  name: 'log-lock-task',
  text: 'SELECT FROM tasks WHERE tenant_id = $1 AND id = $2 FOR UPDATE',
};
