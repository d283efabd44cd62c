import type { Database } from '../../connection/database.js';
import { keyOfTenant } from '../../connection/row-security.js';
import { type Inputs, list, one, statement } from '../../sql/statement.js';
import { leaseExpiry } from '../../dispatch/lease-expiry.js';
import { hasState } from '../../dispatch/run-conditions.js';
import type { LeaseKey, LostLease } from './lease-key.js';

interface LostRow {
  run_id: string;
  attempt: number;
}

const LEASE = {
  tenant_id: ['uuid', ({ tenantId }) => tenantId],
  run_id: ['uuid', ({ runId }) => runId],
  attempt: ['int', ({ attempt }) => attempt],
} satisfies Inputs<LeaseKey>;

const WORKER = {
  id: ['text', ({ workerId }) => workerId],
  lease_ms: ['int', ({ leaseMs }) => leaseMs],
} satisfies Inputs<{ workerId: string; leaseMs: number }>;

/**
 * It never waits for a lock: one locked row must not cost the worker all other leases. Every row is found by its key, whatever
 * the planner's statistics are.
 */
export const HEARTBEAT = statement(
  'run-heartbeat',
  { leases: list(LEASE), worker: one(WORKER) },
  ({ leases, worker }) => `
WITH k AS (
  SELECT * FROM ${leases.rows('k')}
), held AS (
  SELECT r.tenant_id, r.id FROM k, LATERAL (
    SELECT r.tenant_id, r.id FROM runs r
    WHERE r.tenant_id = ${keyOfTenant('k.tenant_id')} AND r.id = k.run_id AND ${hasState('running')}
      AND r.worker_id = ${worker.id} AND k.attempt IN (0, r.attempt)
    FOR NO KEY UPDATE SKIP LOCKED
  ) r
), beat AS (
  UPDATE runs r SET lease_expires_at = ${leaseExpiry(worker.lease_ms)}
  FROM held WHERE r.tenant_id = ${keyOfTenant('held.tenant_id')} AND r.id = held.id
)
SELECT k.run_id, k.attempt FROM k
WHERE k.attempt > 0 AND k.attempt IS DISTINCT FROM (
  SELECT r.attempt FROM runs r
  WHERE r.tenant_id = ${keyOfTenant('k.tenant_id')} AND r.id = k.run_id AND ${hasState('running')} AND r.worker_id = ${worker.id}
)`,
);

/**
 * Extends the leases of a worker, of many tenants at once.
 * @param leaseMs how long each lease lasts from now on, in milliseconds
 * @returns the leases that another worker has, or whose run is over
 */
export async function heartbeat(
  database: Database,
  leases: readonly LeaseKey[],
  workerId: string,
  leaseMs: number,
): Promise<LostLease[]> {
  const values = HEARTBEAT.values({ leases, worker: { workerId, leaseMs } });
  const rows = await database.systemQuery<LostRow>(HEARTBEAT, values);
  return rows.map(({ run_id: runId, attempt }) => ({ runId, attempt }));
}
