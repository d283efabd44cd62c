import type { Database, Statement } from '../../connection/database.js';
import { keyOfTenant } from '../../connection/row-security.js';
import { hasEnded } from '../../connection/session-name.js';

/** Workers whose session has ended a moment ago. */
export const ENDED_WORKERS = `
  SELECT id FROM workers WHERE seen_at > now() - interval '1 minute' AND ${hasEnded('session')}`;

/** $1 rest of a lease in ms $2 the end of these leases. It never waits for a lock: heartbeats lock many runs. */
const END_ORPHANED: Statement = {
  name: 'run-end-orphaned',
  text: `
WITH orphaned AS (
  SELECT tenant_id, id FROM runs r
  WHERE r.state = 'running' AND r.worker_id IN (${ENDED_WORKERS})
    AND r.lease_expires_at BETWEEN $2::timestamptz AND $2::timestamptz + $1::int * interval '1 millisecond'
  FOR NO KEY UPDATE SKIP LOCKED
)
UPDATE runs r SET lease_expires_at = $2::timestamptz - interval '1 millisecond'
FROM orphaned o WHERE r.tenant_id = ${keyOfTenant('o.tenant_id')} AND r.id = o.id
RETURNING r.worker_id AS "workerId"`,
};

/**
 * Ends the leases of runs whose worker has lost its session and has not extended them since: it is dead, or too slow to connect
 * again. A worker that lives may still extend them until another takes the runs.
 * @param orphanLeaseMs as for `findWork`
 * @param at by the clock of Postgres, from `findWork`
 * @returns the worker of each
 */
export async function endOrphanedLeases(
  database: Database,
  orphanLeaseMs: number,
  at: string,
): Promise<string[]> {
  const rows = await database.systemQuery<{ workerId: string }>(END_ORPHANED, [orphanLeaseMs, at]);
  return rows.map(({ workerId }) => workerId);
}
