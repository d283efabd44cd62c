import type { Database, Statement } from '../connection/database.js';
import { keyOfTenant } from '../connection/row-security.js';
import { mayUseReserved } from '../dispatch/run-conditions.js';
import { RUN_COLUMNS, type RunToEnqueue, type RunToEnqueueRow, runToEnqueueOf } from '../dispatch/run-key.js';

/** $1 age in ms $2 limit */
const TAKE_STALE_QUEUED: Statement = {
  name: 'run-take-stale-queued',
  text: `
WITH stale AS (
  SELECT tenant_id, id FROM runs
  WHERE state = 'queued' AND enqueued_at IS NOT NULL
    AND enqueued_at < now() - $1::int * interval '1 millisecond'
  ORDER BY enqueued_at LIMIT $2 FOR UPDATE SKIP LOCKED
)
UPDATE runs r SET enqueued_at = now()
FROM stale s WHERE r.tenant_id = ${keyOfTenant('s.tenant_id')} AND r.id = s.id
RETURNING ${RUN_COLUMNS}, ${mayUseReserved('1')} AS may_use_reserved`,
};

/** Takes queued runs that were not enqueued in the last `olderThanMs`; marks them as enqueued now. */
export async function takeStaleQueued(
  database: Database,
  olderThanMs: number,
  limit: number,
): Promise<RunToEnqueue[]> {
  const rows = await database.systemQuery<RunToEnqueueRow>(TAKE_STALE_QUEUED, [olderThanMs, limit]);
  return rows.map(runToEnqueueOf);
}
