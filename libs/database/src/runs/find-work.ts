import type { QueryResultRow } from 'pg';
import { isCanceledAndDue } from '../after-cancel/canceled-task.store.js';
import { isUndoDue } from '../after-cancel/compensation.store.js';
import type { Database, Statement } from '../connection/database.js';
import { isSleepOver, WAITING, WAITS_FOR_TASKS } from '../dispatch/run-conditions.js';
import { isAnyDue } from '../schedules/schedule-sql.js';
import { TERMINAL_STATES } from '../tasks/task-row.js';
import { ENDED_WORKERS } from './leases/end-orphaned-leases.js';
import type { SweepFindings } from './sweep-findings.js';

/**
 * $1 age in ms at which a run on the queue counts as lost. $2 rest of a lease in ms with which a run is lost if its worker's session has
 * ended.
 *
 * The record in the WAL proves that Postgres commits to the disk, as a heartbeat does. The statement has no name: Postgres then plans it
 * for the present size of the tables. Outer columns are qualified: in a subquery, a bare name is a column of the subquery's table.
 */
const FIND_WORK: Statement = {
  text: `
SELECT sweep.started_at::text AS at, pg_logical_emit_message(true, 'baton', 'sweep') IS NOT NULL AS written,
  coalesce(leases.first_end < sweep.started_at, false) AS "expiredRuns",
  coalesce(orphans.lost_at <= sweep.started_at, false) AS "orphanedRuns",
  (extract(epoch FROM least(
    leases.next_end, CASE WHEN orphans.lost_at > sweep.started_at THEN orphans.lost_at END,
    (SELECT min(not_before) FROM runs WHERE ${WAITING} AND not_before > sweep.started_at),
    (SELECT min(due_at) FROM push_configs WHERE due_at > sweep.started_at),
    (SELECT min(not_before) FROM runs WHERE state = 'suspended' AND not_before > sweep.started_at),
    (SELECT min(wakes_at) FROM tasks WHERE wakes_at > sweep.started_at),
    (SELECT min(due_at) FROM bulk_operations WHERE due_at > sweep.started_at)
  ) - sweep.started_at) * 1000)::float8 AS "nextMs",
  EXISTS (
    SELECT FROM runs
    WHERE state = 'queued' AND enqueued_at IS NOT NULL
      AND enqueued_at < sweep.started_at - $1::int * interval '1 millisecond'
  ) AS "staleQueuedRuns",
  EXISTS (
    SELECT FROM runs WHERE ${WAITING} AND (not_before IS NULL OR not_before <= sweep.started_at)
  ) AS "waitingRuns",
  EXISTS (SELECT FROM runs WHERE ${isSleepOver('sweep.started_at')}) AS "dueSleeps",
  EXISTS (SELECT FROM runs WHERE ${WAITS_FOR_TASKS}) AS "waitsForTasks",
  EXISTS (SELECT FROM runs WHERE state = 'suspended' AND parked_at IS NOT NULL) AS "parkedRuns",
  EXISTS (SELECT FROM tasks WHERE wakes_at <= sweep.started_at) AS "unansweredTasks",
  EXISTS (
    SELECT FROM tasks WHERE ${isCanceledAndDue('remote_calls_at', 'sweep.started_at')}
  ) AS "canceledRemoteCalls",
  EXISTS (SELECT FROM tasks WHERE ${isUndoDue('sweep.started_at')}) AS "dueCompensations",
  EXISTS (
    SELECT FROM tasks WHERE parent_task_id IS NOT NULL AND state NOT IN (${TERMINAL_STATES})
  ) AS "openChildren",
  ${isAnyDue('sweep.started_at')} AS "dueSchedules",
  EXISTS (SELECT FROM push_configs WHERE due_at <= sweep.started_at) AS "duePushes",
  EXISTS (SELECT FROM bulk_operations WHERE due_at <= sweep.started_at) AS "bulkOperations",
  EXISTS (SELECT FROM tasks WHERE reminds_at <= sweep.started_at) AS "dueReminders",
  EXISTS (SELECT FROM spending_counts WHERE notice_at <= sweep.started_at) AS "dueSpendingWarnings",
  EXISTS (
    SELECT FROM agents WHERE next_version IS NOT NULL AND next_share > 0 AND deleted_at IS NULL
  ) AS "triedVersions"
FROM (SELECT clock_timestamp() AS started_at) sweep, LATERAL (
  SELECT min(lease_expires_at) AS first_end,
    min(lease_expires_at) FILTER (WHERE lease_expires_at >= sweep.started_at) AS next_end
  FROM runs WHERE state = 'running'
) leases, LATERAL (
  SELECT min(r.lease_expires_at) - $2::int * interval '1 millisecond' AS lost_at
  FROM (${ENDED_WORKERS}) w, runs r
  WHERE r.state = 'running' AND r.worker_id = w.id AND r.lease_expires_at >= sweep.started_at
) orphans`,
};

/**
 * Finds the work of a sweep. Rejects when Postgres cannot commit to the disk.
 * @param staleQueuedRunMs age at which a run on the queue counts as lost
 * @param orphanLeaseMs rest of a lease with which a run counts as lost if the session of its worker has ended
 */
export async function findWork(
  database: Database,
  staleQueuedRunMs: number,
  orphanLeaseMs = 0,
): Promise<SweepFindings> {
  const values = [staleQueuedRunMs, orphanLeaseMs];
  const [row] = await database.systemQuery<SweepFindings & QueryResultRow>(FIND_WORK, values);
  if (!row) throw new Error('Postgres gave no answer');
  return row;
}
