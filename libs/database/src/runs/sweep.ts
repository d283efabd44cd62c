import { TaskState } from '@baton/a2a';
import type { QueryResultRow } from 'pg';
import type { Database, Statement } from '../connection/database.js';
import { keyOfTenant } from '../connection/row-security.js';
import { hasEnded } from '../connection/session-name.js';
import { mayUseReserved, WAITING } from '../dispatch/run-conditions.js';
import { RUN_COLUMNS, type RunToEnqueue, type RunToEnqueueRow, runToEnqueueOf } from '../dispatch/run-key.js';
import { isAnyDue } from '../schedules/schedule-sql.js';
import { TERMINAL_STATES } from '../tasks/task-row.js';
import type { SweepFindings } from './sweep-findings.js';
import { afterEnd } from '../dispatch/run-history.js';
import { isUndoDue } from './compensation.store.js';

// The steps of a sweep: `findWork` finds the work. `endOrphanedLeases` ends the leases of dead workers. `reclaimExpired` and
// `failPoisonedRuns` (fail-poisoned.ts) take runs with an expired lease. `takeStaleQueued` takes runs whose jobs the queue has lost.

/** Workers whose session has ended a moment ago. */
const ENDED_WORKERS = `
  SELECT id FROM workers WHERE seen_at > now() - interval '1 minute' AND ${hasEnded('session')}`;

/**
 * $1 age in ms at which a run on the queue counts as lost. $2 rest of a lease in ms with which a run is lost if its worker's session has
 * ended. The record in the WAL proves that Postgres commits to the disk, as a
 * heartbeat does. The statement has no name, so Postgres plans it for the present size of the tables each time. The outer columns are
 * always qualified: the same bare name in a subquery would be a column of its table, if there is one.
 */
const FIND_WORK: Statement = {
  text: `
SELECT look.started_at::text AS at, pg_logical_emit_message(true, 'baton', 'sweep') IS NOT NULL AS written,
  coalesce(leases.first_end < look.started_at, false) AS "expiredRuns",
  coalesce(orphans.lost_at <= look.started_at, false) AS "orphanedRuns",
  (extract(epoch FROM least(
    leases.next_end, CASE WHEN orphans.lost_at > look.started_at THEN orphans.lost_at END,
    (SELECT min(not_before) FROM runs WHERE ${WAITING} AND not_before > look.started_at),
    (SELECT min(due_at) FROM push_configs WHERE due_at > look.started_at),
    (SELECT min(not_before) FROM runs WHERE state = 'suspended' AND not_before > look.started_at),
    (SELECT min(wakes_at) FROM tasks WHERE wakes_at > look.started_at),
    (SELECT min(due_at) FROM bulk_operations WHERE due_at > look.started_at)
  ) - look.started_at) * 1000)::float8 AS "nextMs",
  EXISTS (
    SELECT FROM runs
    WHERE state = 'queued' AND enqueued_at IS NOT NULL
      AND enqueued_at < look.started_at - $1::int * interval '1 millisecond'
  ) AS "staleQueuedRuns",
  EXISTS (
    SELECT FROM runs WHERE ${WAITING} AND (not_before IS NULL OR not_before <= look.started_at)
  ) AS "waitingRuns",
  EXISTS (SELECT FROM runs WHERE state = 'suspended') AS "suspendedRuns",
  EXISTS (SELECT FROM tasks WHERE wakes_at <= look.started_at) AS "unansweredTasks",
  EXISTS (
    SELECT FROM tasks WHERE remote_calls_at <= look.started_at AND state = ${TaskState.TASK_STATE_CANCELED}
  ) AS "canceledRemoteCalls",
  EXISTS (SELECT FROM tasks WHERE ${isUndoDue('look.started_at')}) AS "dueCompensations",
  EXISTS (
    SELECT FROM tasks WHERE parent_task_id IS NOT NULL AND state NOT IN (${TERMINAL_STATES})
  ) AS "openChildren",
  ${isAnyDue('look.started_at')} AS "dueSchedules",
  EXISTS (SELECT FROM push_configs WHERE due_at <= look.started_at) AS "duePushes",
  EXISTS (SELECT FROM bulk_operations WHERE due_at <= look.started_at) AS "bulkOperations",
  EXISTS (SELECT FROM tasks WHERE reminds_at <= look.started_at) AS "dueReminders",
  EXISTS (SELECT FROM spending_counts WHERE notice_at <= look.started_at) AS "dueSpendingWarnings"
FROM (SELECT clock_timestamp() AS started_at) look, LATERAL (
  SELECT min(lease_expires_at) AS first_end,
    min(lease_expires_at) FILTER (WHERE lease_expires_at >= look.started_at) AS next_end
  FROM runs WHERE state = 'running'
) leases, LATERAL (
  SELECT min(r.lease_expires_at) - $2::int * interval '1 millisecond' AS lost_at
  FROM (${ENDED_WORKERS}) w, runs r
  WHERE r.state = 'running' AND r.worker_id = w.id AND r.lease_expires_at >= look.started_at
) orphans`,
};

/**
 * Finds the work of a sweep. Rejects when Postgres can't commit to the disk.
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
