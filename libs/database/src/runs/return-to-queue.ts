import type { Database } from '../connection/database.js';
import { keyOfTenant } from '../connection/row-security.js';
import { type Inputs, one, statement } from '../sql/statement.js';
import { hasState, mayUseReserved } from '../dispatch/run-conditions.js';
import {
  RUN_COLUMNS,
  type RunKey,
  type RunToEnqueue,
  type RunToEnqueueRow,
  runToEnqueueOf,
} from '../dispatch/run-key.js';
import { afterEnd } from '../dispatch/run-history.js';

const RUN = {
  tenant_id: ['uuid', ({ run }) => run.tenantId],
  id: ['uuid', ({ run }) => run.runId],
  attempt: ['int', ({ run }) => run.attempt],
  reserve_up_to: ['int', ({ reserveUpTo }) => reserveUpTo],
} satisfies Inputs<{ run: RunKey; reserveUpTo: number }>;

export const RETURN_TO_QUEUE = statement(
  'run-return-to-queue-2',
  { run: one(RUN) },
  ({ run }) => `
UPDATE runs r SET state = 'queued', worker_id = NULL, lease_expires_at = NULL, enqueued_at = now(), history = ${afterEnd('returned')}
WHERE tenant_id = ${keyOfTenant(run.tenant_id)} AND id = ${run.id} AND attempt = ${run.attempt} AND ${hasState('running')}
RETURNING ${RUN_COLUMNS}, ${mayUseReserved(run.reserve_up_to)} AS may_use_reserved`,
);

/**
 * Returns a run to the queue (shutdown). This does not count as a crash. The attempt number stays, because a fencing token never
 * goes back. Only expired leases count against a run.
 * @param reserveUpTo as in `RunQuota`
 * @returns the run, which must be enqueued now. Undefined: the attempt is over
 */
export async function returnToQueue(
  database: Database,
  run: RunKey,
  reserveUpTo = 1,
): Promise<RunToEnqueue | undefined> {
  const values = RETURN_TO_QUEUE.values({ run: { run, reserveUpTo } });
  const [row] = await database.tenantQuery<RunToEnqueueRow>(run.tenantId, RETURN_TO_QUEUE, values);
  return row && runToEnqueueOf(row);
}
