import { keyOfTenant } from '../../connection/row-security.js';
import type { Statement } from '../../connection/database.js';

/** The clock, not the start of the transaction: it may have waited for a lock. */
export const leaseEnd = (milliseconds: string): string =>
  `clock_timestamp() + ${milliseconds} * interval '1 millisecond'`;

/**
 * SQL of the condition that the run `r`, found by its key, has one of these states. As CASE: Postgres would else read all
 * active runs of the tenant, because their index has few entries.
 */
export const hasState = (...states: ('queued' | 'running' | 'suspended')[]): string =>
  `CASE WHEN r.state IN (${states.map((state) => `'${state}'`).join(', ')}) THEN true ELSE false END`;

/**
 * $1 tenants $2 runs $3 attempts (0 = whichever the worker has) $4 worker $5 lease in ms. Returns the runs that another
 * worker has. It never waits for a lock: one locked row must not cost the worker all other leases. Every row is found
 * by its key, whatever the planner's statistics are.
 */
export const HEARTBEAT: Statement = {
  name: 'run-heartbeat',
  text: `
WITH k AS (
  SELECT * FROM unnest($1::uuid[], $2::uuid[], $3::int[]) AS k(tenant_id, run_id, attempt)
), held AS (
  SELECT r.tenant_id, r.id FROM k, LATERAL (
    SELECT r.tenant_id, r.id FROM runs r
    WHERE r.tenant_id = ${keyOfTenant('k.tenant_id')} AND r.id = k.run_id AND ${hasState('running')}
      AND r.worker_id = $4 AND k.attempt IN (0, r.attempt)
    FOR NO KEY UPDATE SKIP LOCKED
  ) r
), beat AS (
  UPDATE runs r SET lease_expires_at = ${leaseEnd('$5::int')}
  FROM held WHERE r.tenant_id = ${keyOfTenant('held.tenant_id')} AND r.id = held.id
)
SELECT k.run_id, k.attempt FROM k
WHERE k.attempt > 0 AND k.attempt IS DISTINCT FROM (
  SELECT r.attempt FROM runs r
  WHERE r.tenant_id = ${keyOfTenant('k.tenant_id')} AND r.id = k.run_id AND ${hasState('running')} AND r.worker_id = $4
)`,
};
