import { TaskState } from '@baton/a2a';
import { isRunOf } from '../dispatch/run-conditions.js';

/** Characters of an error that lists show. */
const MAX_ERROR = 1_000;
/** SQL of the message of the last error in the agent's code, for a task `t` that has failed. */
export const LAST_ERROR = `CASE WHEN t.state = ${TaskState.TASK_STATE_FAILED} THEN (
    SELECT left(r.error_detail->>'message', ${MAX_ERROR}) FROM runs r
    WHERE ${isRunOf('r', 't.tenant_id', 't.id')} AND r.error_detail IS NOT NULL ORDER BY r.created_at DESC, r.id DESC LIMIT 1) END`;
