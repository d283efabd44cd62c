import type { Database, Statement } from '../../connection/database.js';
import { keyOfTenant } from '../../connection/row-security.js';
import { mayUseReserved } from '../../dispatch/run-conditions.js';
import { afterEnd } from '../../dispatch/run-history.js';
import {
  RUN_COLUMNS,
  type RunToEnqueue,
  type RunToEnqueueRow,
  runToEnqueueOf,
} from '../../dispatch/run-key.js';

/**
 * The pause of a run after its worker died, in ms: the agent's backoff, or the pause that grows with each crash if that
 * is longer. The column `deaths` counts the crashes before.
 */
const CRASH_PAUSE = `greatest(least(r.backoff_max_ms, r.backoff_ms * power(r.backoff_factor, r.deaths)),
  CASE r.deaths WHEN 0 THEN 0 ELSE least(60000, 1000 * power(4, r.deaths - 1)) END)`;

/** A run in backoff waits in Postgres until it is due: $1 limit $2 when the leases had run out */
const RECLAIM_EXPIRED: Statement = {
  name: 'run-reclaim-expired-2',
  text: `
WITH expired AS (
  SELECT tenant_id, id, ${CRASH_PAUSE} AS pause FROM runs r
  WHERE state = 'running' AND lease_expires_at < $2::timestamptz AND deaths + 1 < max_attempts
  ORDER BY lease_expires_at LIMIT $1 FOR UPDATE SKIP LOCKED
)
UPDATE runs r SET state = 'queued', deaths = r.deaths + 1, history = ${afterEnd('crashed')}, worker_id = NULL, lease_expires_at = NULL,
  enqueued_at = CASE e.pause WHEN 0 THEN now() END,
  not_before = CASE WHEN e.pause > 0 THEN clock_timestamp() + e.pause * interval '1 millisecond' END
FROM expired e WHERE r.tenant_id = ${keyOfTenant('e.tenant_id')} AND r.id = e.id
RETURNING ${RUN_COLUMNS}, r.enqueued_at IS NULL AS waits, ${mayUseReserved('1')} AS may_use_reserved`,
};

/**
 * Takes runs whose leases had expired back to `queued`, if attempts remain: at once after the first crash of a run without a
 * backoff, else after a pause.
 * @param expiredAt by the clock of Postgres, from `findWork`
 * @returns those that must be enqueued now; the others wait in Postgres
 */
export async function reclaimExpired(
  database: Database,
  limit: number,
  expiredAt: string,
): Promise<RunToEnqueue[]> {
  const rows = await database.systemQuery<RunToEnqueueRow & { waits: boolean }>(RECLAIM_EXPIRED, [
    limit,
    expiredAt,
  ]);
  return rows.filter(({ waits }) => !waits).map(runToEnqueueOf);
}
