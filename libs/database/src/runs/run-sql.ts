import { WAITING } from '../dispatch/dispatch.store.js';
import { RUN_COLUMNS, type RunRow } from '../dispatch/run-key.js';
import { TaskState } from '@baton/a2a';
import type { Statement } from '../connection/database.js';
import { statusEventSql, taskColumns, type TaskRow, TERMINAL_STATES } from '../tasks/task-row.js';
import { sizeOf, USAGE_CTE } from '../tenants/usage.store.js';
import { leaseEnd } from './leases/lease-sql.js';

/** An error in an agent's code. Its details are for the agent's author, not for callers. */
export interface RunError {
  attempt: number;
  /** ISO 8601. */
  at: string;
  name: string;
  message: string;
  stack?: string;
  /** The last lines that the run has written to its console. */
  output?: string[];
  /** Set if its process has died: the reason, which callers may read. */
  crash?: string;
  /** Other runs were in the process that died: the next attempt gets a process of its own. */
  runsAlone?: boolean;
}

export interface RunErrorRecord extends RunError {
  runId: string;
}

export interface ErrorRow {
  run_id: string;
  error_detail: RunError;
}

/** $1 tenant $2 run $3 attempt $4 what is known of the error */
export const NOTE_ERROR: Statement = {
  name: 'run-note-error',
  text: 'UPDATE runs SET error_detail = $4 WHERE tenant_id = $1 AND id = $2 AND attempt = $3',
};

/** The same, and its lease is over: the sweeper counts it as an attempt that died. */
export const GIVE_UP: Statement = {
  name: 'run-give-up',
  text: `
UPDATE runs SET error_detail = $4, lease_expires_at = clock_timestamp()
WHERE tenant_id = $1 AND id = $2 AND attempt = $3 AND state = 'running'`,
};

/** The last error of a task, of whichever of its turns: $1 tenant $2 task */
export const LAST_ERROR: Statement = {
  name: 'run-last-error',
  text: `
SELECT id AS run_id, error_detail FROM runs
WHERE tenant_id = $1 AND task_id = $2 AND error_detail IS NOT NULL
ORDER BY created_at DESC, id DESC LIMIT 1`,
};

// Statements that change a task and its run lock the task first. Statements that lock many rows lock only runs, or skip
// locked rows. So no two statements deadlock.

export interface ClaimRow {
  attempt: number;
  /** The task was not working yet: the claim wrote the event at `sequence`. */
  started: boolean;
  sequence: number;
}
export type ClaimedTaskRow = TaskRow & {
  message: object;
  start_sequence: number;
  extensions: string[] | null;
  traceparent: string | null;
  parent_task_id: string | null;
  push_configs: number;
  error_detail: RunError | null;
  waited_seconds: number;
};
/** What a batch that was appended says of the task. */
export interface AppendedRow {
  push_configs: number;
  /** With `APPEND_END` alone. */
  child_tasks?: number;
}

export type PoisonedRow = RunRow & { crash_count: number; context_id: string; error_detail: RunError | null };

/**
 * A value and not a join, so that the index always finds the one row. A plan made and kept while the tables are empty
 * would read all tasks of the tenant at every claim.
 */
const TASK_OF_RUN = '(SELECT task_id FROM runs WHERE tenant_id = $1 AND id = $2)';
/**
 * The pause of a run after its worker died, in ms: the agent's backoff, or the pause that grows with each crash if that
 * is longer. The column `deaths` counts the crashes before.
 */
const CRASH_PAUSE = `greatest(least(r.backoff_max_ms, r.backoff_ms * power(r.backoff_factor, r.deaths)),
  CASE r.deaths WHEN 0 THEN 0 ELSE least(60000, 1000 * power(4, r.deaths - 1)) END)`;
/** Runs in quarantine: they have crashed twice or more, or have one attempt left. */
const SUSPECT = '(r.deaths > 1 OR r.deaths > 0 AND r.deaths + 1 >= r.max_attempts)';
const WORKING = TaskState.TASK_STATE_WORKING.toString();
/**
 * $1 tenant $2 run $3 worker $4 lease in ms $5 status $6 at $7 whether this worker may have claimed it before and not
 * have heard the answer. Only the sweeper takes expired leases: it counts crashes and attempts, and it knows whether
 * Postgres was away.
 */
export const CLAIM: Statement = {
  name: 'run-claim',
  text: `
WITH held AS (
  SELECT t.id, t.state FROM tasks t
  WHERE t.tenant_id = $1 AND t.id = ${TASK_OF_RUN} AND t.active_run_id = $2
  FOR UPDATE
), run AS (
  UPDATE runs r SET state = 'running', attempt = r.attempt + (r.state = 'queued')::int, worker_id = $3,
    lease_expires_at = ${leaseEnd('$4::int')}
  FROM held
  WHERE r.tenant_id = $1 AND r.id = $2
    AND (r.state = 'queued' AND r.enqueued_at IS NOT NULL OR $7 AND r.state = 'running' AND r.worker_id = $3)
  RETURNING r.attempt
), task AS (
  UPDATE tasks t SET attempt = run.attempt, state = ${WORKING},
    status = CASE held.state WHEN ${WORKING} THEN t.status ELSE $5 END,
    status_at = CASE held.state WHEN ${WORKING} THEN t.status_at ELSE $6 END,
    last_sequence = t.last_sequence + CASE held.state WHEN ${WORKING} THEN 0 ELSE 1 END
  FROM held, run WHERE t.tenant_id = $1 AND t.id = (SELECT id FROM held)
  RETURNING t.id, t.context_id, t.last_sequence, t.attempt, held.state <> ${WORKING} AS started
), event AS (
  INSERT INTO task_events (tenant_id, task_id, sequence, attempt, payload, artifact)
  SELECT $1, t.id, t.last_sequence, t.attempt, ${statusEventSql('$5')}, 0 FROM task t WHERE t.started
)
SELECT attempt, started, last_sequence AS sequence FROM task`,
};

/**
 * What the claim before it in the same transaction got: $1 tenant $2 run $3 worker. Of a large task it reads only the
 * beginning, so that every run can be claimed.
 */
export const READ_CLAIMED: Statement = {
  name: 'run-read-claimed',
  text: `
SELECT ${taskColumns('NULL', true)}, t.parent_task_id, t.push_configs, r.start_sequence, r.extensions, r.traceparent, r.error_detail,
  extract(epoch FROM clock_timestamp() - r.created_at)::float8 AS waited_seconds,
  (SELECT message FROM task_messages
   WHERE tenant_id = $1 AND task_id = t.id AND sequence = r.start_sequence) AS message
FROM runs r, tasks t
WHERE t.tenant_id = $1 AND t.id = ${TASK_OF_RUN}
  AND r.tenant_id = $1 AND r.id = $2 AND r.worker_id = $3 AND r.state = 'running'`,
};

/**
 * $1 tenant $2 task $3 run $4 attempt $5 head the writer knows $6 number of events $7 events (JSON array)
 * $8 state $9 status $10 at $11 positions and $12 texts of the messages said $13 metadata $14 the artifact of each
 * event $15 positions of the events that begin one anew.
 * With `end`: $16 artifacts, NULL = too large for the row $17 outcome $18 state of the run $19 its error.
 */
const append = (name: string, end: boolean): Statement => ({
  name,
  text: `
WITH task AS (
  UPDATE tasks SET last_sequence = last_sequence + $6::int,
    state = COALESCE($8::smallint, state), status = COALESCE($9::json, status),
    status_at = COALESCE($10::timestamptz, status_at), metadata = COALESCE($13::json, metadata),
    open_bytes = open_bytes + ${sizeOf('$7')}
    ${
      end
        ? `, active_run_id = NULL, outcome = $17,
    stored_bytes = stored_bytes + open_bytes + ${sizeOf('$7')}, artifacts = coalesce($16::json, artifacts),
    artifacts_sequence = CASE WHEN $16::json IS NULL THEN artifacts_sequence ELSE last_sequence + $6::int END`
        : ''
    }
  WHERE tenant_id = $1 AND id = $2 AND active_run_id = $3 AND attempt = $4 AND last_sequence = $5
    AND state NOT IN (${TERMINAL_STATES})
  RETURNING id, open_bytes, child_tasks, push_configs
), event AS (
  INSERT INTO task_events (tenant_id, task_id, sequence, attempt, payload, artifact, bytes)
  SELECT $1, task.id, $5 + e.position, $4, e.payload, ($14::bigint[])[e.position], octet_length(e.payload::text)
  FROM task, json_array_elements($7::json) WITH ORDINALITY AS e(payload, position)
), start AS (
  INSERT INTO artifact_starts (tenant_id, task_id, artifact, sequence)
  SELECT $1, task.id, ($14::bigint[])[s.position], $5 + s.position FROM task, unnest($15::int[]) AS s(position)
), message AS (
  INSERT INTO task_messages (tenant_id, task_id, sequence, message)
  SELECT $1, task.id, $5 + m.position, m.message::json
  FROM task, unnest($11::int[], $12::text[]) AS m(position, message)
)${
    end
      ? `, run AS (
  UPDATE runs r SET state = $18, error = $19, finished_at = now(), lease_expires_at = NULL
  FROM task WHERE r.tenant_id = $1 AND r.id = $3
), ${USAGE_CTE}`
      : ''
  }
SELECT push_configs${end ? ', child_tasks' : ''} FROM task`,
});

export const APPEND = append('run-append', false);
export const APPEND_END = append('run-append-end', true);

/** $1 tenant $2 run $3 attempt */
export const RETURN_TO_QUEUE: Statement = {
  name: 'run-return-to-queue',
  text: `
UPDATE runs SET state = 'queued', worker_id = NULL, lease_expires_at = NULL, enqueued_at = now()
WHERE tenant_id = $1 AND id = $2 AND attempt = $3 AND state = 'running'
RETURNING id`,
};

/** $1 tenant $2 run $3 attempt $4 version */
export const NOTE_AGENT_VERSION: Statement = {
  name: 'run-note-agent-version',
  text: 'UPDATE runs SET agent_version = $4 WHERE tenant_id = $1 AND id = $2 AND attempt = $3',
};

/** What the sweeps have to do. All but the first two are checked again when the work is taken. */
export interface SweepFindings {
  /** The clock of Postgres at a moment at which it certainly took heartbeats. */
  at: string;
  /** When the next lease ends, or pause before an attempt of a run or of a push, in ms from then on; null: there is none. */
  nextMs: number | null;
  expiredRuns: boolean;
  staleQueuedRuns: boolean;
  /** Runs that may be put on the queue as soon as there is room. */
  waitingRuns: boolean;
  suspendedRuns: boolean;
  /** Children of tasks that have not ended. */
  openChildren: boolean;
  dueSchedules: boolean;
  duePushes: boolean;
}

/**
 * $1 age in ms at which a run on the queue counts as lost. The record in the log of writes proves that Postgres commits to
 * the disk, as a heartbeat does. It has no name: it is planned for the tables as they are, not as they once were.
 */
export const LOOK: Statement = {
  text: `
SELECT at::text AS at, pg_logical_emit_message(true, 'baton', 'sweep') IS NOT NULL AS written,
  coalesce(leases.first < at, false) AS "expiredRuns",
  (extract(epoch FROM least(
    leases.next, (SELECT min(not_before) FROM runs WHERE ${WAITING} AND not_before > at),
    (SELECT min(due_at) FROM push_configs WHERE due_at > at)
  ) - at) * 1000)::float8 AS "nextMs",
  EXISTS (
    SELECT FROM runs
    WHERE state = 'queued' AND enqueued_at IS NOT NULL AND enqueued_at < at - $1::int * interval '1 millisecond'
  ) AS "staleQueuedRuns",
  EXISTS (SELECT FROM runs WHERE ${WAITING} AND (not_before IS NULL OR not_before <= at)) AS "waitingRuns",
  EXISTS (SELECT FROM runs WHERE state = 'suspended') AS "suspendedRuns",
  EXISTS (
    SELECT FROM tasks WHERE parent_task_id IS NOT NULL AND state NOT IN (${TERMINAL_STATES})
  ) AS "openChildren",
  EXISTS (SELECT FROM schedules WHERE wake_at <= at) AS "dueSchedules",
  EXISTS (SELECT FROM push_configs WHERE due_at <= at) AS "duePushes"
FROM (SELECT clock_timestamp() AS at) now, LATERAL (
  SELECT min(lease_expires_at) AS first, min(lease_expires_at) FILTER (WHERE lease_expires_at >= at) AS next
  FROM runs WHERE state = 'running'
) leases`,
};

/** A run in backoff waits in Postgres until it is due: $1 limit $2 when the leases had run out */
export const RECLAIM_EXPIRED: Statement = {
  name: 'run-reclaim-expired',
  text: `
WITH expired AS (
  SELECT tenant_id, id, ${CRASH_PAUSE} AS pause FROM runs r
  WHERE state = 'running' AND lease_expires_at < $2::timestamptz AND deaths + 1 < max_attempts
  ORDER BY lease_expires_at LIMIT $1 FOR UPDATE SKIP LOCKED
)
UPDATE runs r SET state = 'queued', deaths = r.deaths + 1, worker_id = NULL, lease_expires_at = NULL,
  enqueued_at = CASE e.pause WHEN 0 THEN now() END,
  not_before = CASE WHEN e.pause > 0 THEN clock_timestamp() + e.pause * interval '1 millisecond' END
FROM expired e WHERE r.tenant_id = e.tenant_id AND r.id = e.id
RETURNING ${RUN_COLUMNS}, r.enqueued_at IS NULL AS waits`,
};

/** $1 tenant $2 run */
export const IS_SUSPECT: Statement = {
  name: 'run-is-suspect',
  text: `SELECT id FROM runs r WHERE tenant_id = $1 AND id = $2 AND state = 'queued' AND ${SUSPECT}`,
};

/** Off the queue for a while: $1 tenant $2 run $3 how long in ms */
export const POSTPONE: Statement = {
  name: 'run-postpone',
  text: `
UPDATE runs SET enqueued_at = NULL, not_before = clock_timestamp() + $3::int * interval '1 millisecond'
WHERE tenant_id = $1 AND id = $2 AND state = 'queued' AND enqueued_at IS NOT NULL`,
};

/** $1 age in ms $2 limit */
export const TAKE_STALE_QUEUED: Statement = {
  name: 'run-take-stale-queued',
  text: `
WITH stale AS (
  SELECT tenant_id, id FROM runs
  WHERE state = 'queued' AND enqueued_at IS NOT NULL
    AND enqueued_at < now() - $1::int * interval '1 millisecond'
  ORDER BY enqueued_at LIMIT $2 FOR UPDATE SKIP LOCKED
)
UPDATE runs r SET enqueued_at = now()
FROM stale s WHERE r.tenant_id = s.tenant_id AND r.id = s.id
RETURNING ${RUN_COLUMNS}`,
};

/**
 * $1 limit $2 when the leases had run out. Locks each task and then its run, and never waits for
 * one: heartbeats lock many runs.
 */
export const FIND_POISONED: Statement = {
  name: 'run-find-poisoned',
  text: `
WITH poisoned AS (
  SELECT tenant_id, id, task_id FROM runs
  WHERE state = 'running' AND lease_expires_at < $2::timestamptz AND deaths + 1 >= max_attempts
  ORDER BY lease_expires_at LIMIT $1
)
SELECT ${RUN_COLUMNS}, r.deaths + 1 AS crash_count, t.context_id, r.error_detail
FROM poisoned p, LATERAL (
  SELECT t.context_id FROM tasks t
  WHERE t.tenant_id = p.tenant_id AND t.id = p.task_id AND t.active_run_id = p.id
  FOR NO KEY UPDATE SKIP LOCKED
) t, LATERAL (
  SELECT r.* FROM runs r
  WHERE r.tenant_id = p.tenant_id AND r.id = p.id AND r.state = 'running' AND r.lease_expires_at < $2::timestamptz
  FOR NO KEY UPDATE SKIP LOCKED
) r`,
};

/** Run and task failed, and a dead letter: $1 tenant $2 task $3 run $4 attempt $5 status $6 at $7 message $8 reason */
export const FAIL_POISONED: Statement = {
  name: 'run-fail-poisoned',
  text: `
WITH run AS (
  UPDATE runs SET state = 'failed', deaths = deaths + 1, error = $8, finished_at = now(), lease_expires_at = NULL
  WHERE tenant_id = $1 AND id = $3 AND attempt = $4 AND state = 'running'
  RETURNING id, deaths
), task AS (
  UPDATE tasks t SET state = ${TaskState.TASK_STATE_FAILED}, status = $5, status_at = $6,
    last_sequence = t.last_sequence + 1, active_run_id = NULL, stored_bytes = t.stored_bytes + t.open_bytes
  FROM run WHERE t.tenant_id = $1 AND t.id = $2 AND t.active_run_id = run.id
  RETURNING t.id, t.context_id, t.last_sequence, t.agent_id, run.deaths
), event AS (
  INSERT INTO task_events (tenant_id, task_id, sequence, attempt, payload, artifact)
  SELECT $1, t.id, t.last_sequence, 0, ${statusEventSql('$5')}, 0 FROM task t
), message AS (
  INSERT INTO task_messages (tenant_id, task_id, sequence, message) SELECT $1, t.id, t.last_sequence, $7 FROM task t
), letter AS (
  INSERT INTO dead_letters (tenant_id, run_id, task_id, agent_id, reason, attempts)
  SELECT $1, $3, t.id, t.agent_id, $8, t.deaths FROM task t
)
SELECT last_sequence AS sequence FROM task`,
};

export const COUNT_ACTIVE: Statement = {
  name: 'run-count-active',
  text: `
SELECT 'waiting' AS state, count(*)::int AS count FROM runs WHERE state = 'queued' AND enqueued_at IS NULL
UNION ALL
SELECT state, count(*)::int AS count FROM runs
WHERE state = 'running' OR (state = 'queued' AND enqueued_at IS NOT NULL) GROUP BY state
UNION ALL
SELECT 'suspended' AS state, count(*)::int AS count FROM runs WHERE state = 'suspended'`,
};
