import type { QueryResultRow } from 'pg';
import type { Database, Statement } from '../connection/database.js';
import { keyOfTenant } from '../connection/row-security.js';

/** $1 age in ms of a run on the queue $2 when the leases had run out $3 limit of each kind. No name: it is rarely executed. */
const END_STRAY: Statement = {
  text: `
WITH lost AS (
  (SELECT tenant_id, id, task_id FROM runs
   WHERE state = 'queued' AND enqueued_at IS NOT NULL AND enqueued_at < now() - $1::int * interval '1 millisecond'
   ORDER BY enqueued_at LIMIT $3)
  UNION ALL
  (SELECT tenant_id, id, task_id FROM runs
   WHERE state = 'running' AND lease_expires_at < $2::timestamptz
   ORDER BY lease_expires_at LIMIT $3)
), stray AS (
  SELECT r.tenant_id, r.id FROM lost l, LATERAL (
    SELECT active_run_id FROM tasks WHERE tenant_id = ${keyOfTenant('l.tenant_id')} AND id = l.task_id OFFSET 0
  ) t, LATERAL (
    SELECT r.tenant_id, r.id FROM runs r
    WHERE r.tenant_id = ${keyOfTenant('l.tenant_id')} AND r.id = l.id AND r.state IN ('queued', 'running')
    FOR NO KEY UPDATE SKIP LOCKED
  ) r
  WHERE t.active_run_id IS DISTINCT FROM l.id
)
UPDATE runs r SET state = 'canceled', finished_at = now(), lease_expires_at = NULL
FROM stray s WHERE r.tenant_id = ${keyOfTenant('s.tenant_id')} AND r.id = s.id
RETURNING r.tenant_id AS "tenantId", r.task_id AS "taskId", r.id AS "runId"`,
};

/** A run that is not the active run of its task. */
export interface StrayRun {
  tenantId: string;
  taskId: string;
  runId: string;
}

/**
 * Ends runs that no worker executes and that are not the active run of their task. Each operation ends or replaces a task's active run
 * together with the task, so such a run means a fault, of Baton or of a change by hand. No worker can claim it. It would hold a slot of its
 * tenant, and keep the task from its next turn, until retention deletes the task.
 * @param olderThanMs age at which a run on the queue counts as lost, in milliseconds
 * @param limit how many queued runs, and how many with an expired lease, are checked
 * @param expiredAt by the clock of Postgres, from `findWork`
 */
export function endStrayRuns(
  database: Database,
  olderThanMs: number,
  limit: number,
  expiredAt: string,
): Promise<StrayRun[]> {
  return database.systemQuery<StrayRun & QueryResultRow>(END_STRAY, [olderThanMs, expiredAt, limit]);
}
