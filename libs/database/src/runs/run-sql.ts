import { keyOfTenant } from '../connection/row-security.js';
import { IN_FLIGHT, MAY_USE_RESERVED, WAITING } from '../dispatch/dispatch.store.js';
import { isRunOf, RUN_COLUMNS, type RunRow } from '../dispatch/run-key.js';
import { TaskState } from '@baton/a2a';
import type { Statement } from '../connection/database.js';
import { statusEventSql } from '../log/log-rows.js';
import {
  INLINE_BYTES,
  metadataColumns,
  taskColumns,
  type TaskRow,
  TERMINAL_STATES,
} from '../tasks/task-row.js';
import { isAnyDue } from '../schedules/schedule-sql.js';
import { GROUP_USAGE_CTE } from '../tenants/usage.store.js';
import { hasState, leaseEnd } from './leases/lease-sql.js';

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
  text: `UPDATE runs SET error_detail = $4 WHERE tenant_id = ${keyOfTenant('$1')} AND id = $2 AND attempt = $3`,
};

/** The same, and its lease is over: the sweeper counts it as an attempt that died. */
export const GIVE_UP: Statement = {
  name: 'run-give-up',
  text: `
UPDATE runs r SET error_detail = $4, lease_expires_at = clock_timestamp()
WHERE tenant_id = ${keyOfTenant('$1')} AND id = $2 AND attempt = $3 AND ${hasState('running')}`,
};

/** The last error of a task, of whichever of its turns: $1 tenant $2 task */
export const LAST_ERROR: Statement = {
  name: 'run-last-error',
  text: `
SELECT id AS run_id, error_detail FROM runs r
WHERE ${isRunOf('r', '$1', '$2')} AND error_detail IS NOT NULL
ORDER BY created_at DESC, id DESC LIMIT 1`,
};

/** The newest runs of a task, at most 100, the newest first: $1 tenant $2 task */
export const RUNS_OF_TASK: Statement = {
  name: 'runs-of-task',
  text: `
SELECT r.id AS "runId", r.state, r.attempt, r.deaths AS crashes, r.worker_id AS "workerId",
  r.start_sequence AS "startSequence", r.created_at AS "createdAt", r.not_before AS "notBefore",
  r.finished_at AS "finishedAt"
FROM runs r
WHERE ${isRunOf('r', '$1', '$2')}
ORDER BY r.created_at DESC, r.id DESC LIMIT 100`,
};

/** A run of a task, for people. */
export interface RunRecord {
  runId: string;
  state: 'queued' | 'running' | 'suspended' | 'succeeded' | 'failed' | 'canceled';
  /** How often a worker has claimed it. */
  attempt: number;
  /** Attempts that ended with their worker. */
  crashes: number;
  /** The worker that has it, or had it last. Null: none yet. */
  workerId: string | null;
  /** Sequence of the event with which its turn was accepted. */
  startSequence: number;
  createdAt: Date;
  /** It waits until then. */
  notBefore: Date | null;
  finishedAt: Date | null;
}

// Statements that change a task and its run lock the task first. Statements that lock many rows lock only runs, or skip
// locked rows. So no two statements deadlock.

export type ClaimedTaskRow = TaskRow & {
  message: object;
  /** What its request said beside it; null = nothing. */
  request: object | null;
  start_sequence: number;
  extensions: string[] | null;
  traceparent: string | null;
  parent_task_id: string | null;
  push_configs: number;
  error_detail: RunError | null;
  waited_seconds: number;
};
export type PoisonedRow = RunRow & { crash_count: number; context_id: string; error_detail: RunError | null };

/**
 * A value and not a join, so that the index always finds the one row. A plan made and kept while the tables are empty
 * would read all tasks of the tenant at every claim.
 */
const TASK_OF_RUN = `(SELECT task_id FROM runs WHERE tenant_id = ${keyOfTenant('$1')} AND id = $2)`;
/**
 * The pause of a run after its worker died, in ms: the agent's backoff, or the pause that grows with each crash if that
 * is longer. The column `deaths` counts the crashes before.
 */
const CRASH_PAUSE = `greatest(least(r.backoff_max_ms, r.backoff_ms * power(r.backoff_factor, r.deaths)),
  CASE r.deaths WHEN 0 THEN 0 ELSE least(60000, 1000 * power(4, r.deaths - 1)) END)`;
/** Runs in quarantine: they have crashed twice or more, or have one attempt left. */
const SUSPECT = '(r.deaths > 1 OR r.deaths > 0 AND r.deaths + 1 >= r.max_attempts)';
// Each statement writes a group of runs of one tenant and judges each on its own: a row that is refused is not in the result.
// The tenant stands in each row of the group, $1, and is no constant. Postgres would else read all rows of a tenant that has
// few by its statistics, and look for those of the group among them. The conditions with ANY (`keyOfTenant`) keep it from reading
// all rows of a table that was small when it made the plan.
// Postgres may evaluate a change again when a row has changed meanwhile. It has the rows of FROM then, but it cannot
// read a changing CTE again. So no expression has a subquery on one.

const WORKING = TaskState.TASK_STATE_WORKING.toString();

/** How large the first message of a task may be to come with the claim, in bytes. */
const FIRST_MESSAGE_BYTES = INLINE_BYTES / 4;

/** What a claim got. */
export interface ClaimedRow {
  run_id: string;
  attempt: number;
  /** The task was not working yet: the claim wrote the event at `last_sequence`. */
  started: boolean;
  last_sequence: number;
  id: string;
  agent_id: string;
  owner: string | null;
  context_id: string;
  metadata: object | null;
  metadata_cut: boolean;
  size: number;
  parent_task_id: string | null;
  push_configs: number;
  start_sequence: number;
  extensions: string[] | null;
  traceparent: string | null;
  error_detail: RunError | null;
  waited_seconds: number;
  /** The message of a new task. Null: the task has more than that, or the message is large; `READ_CLAIMED` reads it. */
  message: object | null;
  message_bytes: number | null;
  /** What the request said beside the message; null = nothing. */
  request: object | null;
}

/**
 * Compare-and-set, queued → running. $1 tenants $2 runs $3 worker of each $4 lease of each, in ms $5 whether that worker may have
 * claimed it before and not have heard the answer $6 status $7 at. Only the sweeper takes expired leases: it counts crashes
 * and attempts, and it knows whether Postgres was away.
 */
export const CLAIM: Statement = {
  name: 'runs-claim',
  text: `
WITH held AS (
  SELECT k.*, t.id, t.state
  FROM unnest($1::uuid[], $2::uuid[], $3::text[], $4::int[], $5::boolean[])
    AS k(tenant_id, run_id, worker_id, lease_ms, again), LATERAL (
    SELECT task_id FROM runs WHERE tenant_id = ${keyOfTenant('k.tenant_id')} AND id = k.run_id OFFSET 0
  ) q, LATERAL (
    SELECT t.id, t.state FROM tasks t
    WHERE t.tenant_id = ${keyOfTenant('k.tenant_id')} AND t.id = q.task_id AND t.active_run_id = k.run_id
    FOR UPDATE
  ) t
), run AS (
  UPDATE runs r SET state = 'running', attempt = r.attempt + (r.state = 'queued')::int, worker_id = held.worker_id,
    lease_expires_at = ${leaseEnd('held.lease_ms')}
  FROM held
  WHERE r.tenant_id = ${keyOfTenant('held.tenant_id')} AND r.id = held.run_id
    AND CASE r.state WHEN 'queued' THEN r.enqueued_at IS NOT NULL
      WHEN 'running' THEN held.again AND r.worker_id = held.worker_id ELSE false END
  RETURNING r.tenant_id, r.id, r.attempt, r.start_sequence, r.extensions, r.traceparent, r.error_detail, r.created_at,
    held.id AS task_id, held.state <> ${WORKING} AS started
), task AS (
  UPDATE tasks t SET attempt = run.attempt, state = ${WORKING},
    status = CASE WHEN run.started THEN '{}' ELSE t.status END,
    status_at = CASE WHEN run.started THEN $7 ELSE t.status_at END,
    last_sequence = t.last_sequence + run.started::int
  FROM run WHERE t.tenant_id = ${keyOfTenant('run.tenant_id')} AND t.id = run.task_id
  RETURNING t.tenant_id, run.id AS run_id, t.id, t.agent_id, t.owner, t.context_id, t.last_sequence, t.attempt, ${metadataColumns},
    (t.stored_bytes + t.open_bytes)::float8 AS size, t.parent_task_id, t.push_configs, run.started, run.start_sequence,
    run.extensions, run.traceparent, run.error_detail,
    extract(epoch FROM clock_timestamp() - run.created_at)::float8 AS waited_seconds
), event AS (
  INSERT INTO task_events (tenant_id, task_id, sequence, attempt, payload, artifact)
  SELECT t.tenant_id, t.id, t.last_sequence, t.attempt, ${statusEventSql('$6')}, 0 FROM task t WHERE t.started
)
SELECT task.*, m.message, octet_length(m.message::text) AS message_bytes, m.request
FROM task LEFT JOIN LATERAL (
  SELECT message, request FROM task_messages
  WHERE task.attempt = 1 AND task.started AND task.last_sequence = 2
    AND tenant_id = task.tenant_id AND task_id = task.id AND sequence = 1
    AND octet_length(message::text) + coalesce(octet_length(request::text), 0) <= ${FIRST_MESSAGE_BYTES}
) m ON true`,
};

/**
 * The task of a run that was claimed for this worker as it was made, if the worker has yet to begin it and its lease lasts:
 * $1 tenants $2 runs $3 worker of each $4 how long the lease must last, of each, in ms. Changes nothing.
 */
export const PICK_UP: Statement = {
  name: 'runs-pick-up',
  text: `
SELECT k.run_id, r.attempt, true AS started, 2 AS last_sequence, t.id, t.agent_id, t.owner, t.context_id, ${metadataColumns},
  (t.stored_bytes + t.open_bytes)::float8 AS size, t.parent_task_id, t.push_configs, r.start_sequence, r.extensions,
  r.traceparent, NULL AS error_detail, extract(epoch FROM clock_timestamp() - r.created_at)::float8 AS waited_seconds,
  m.message, octet_length(m.message::text) AS message_bytes, m.request
FROM unnest($1::uuid[], $2::uuid[], $3::text[], $4::int[]) AS k(tenant_id, run_id, worker_id, least_ms), LATERAL (
  SELECT r.task_id, r.attempt, r.start_sequence, r.extensions, r.traceparent, r.created_at FROM runs r
  WHERE r.tenant_id = ${keyOfTenant('k.tenant_id')} AND r.id = k.run_id AND r.worker_id = k.worker_id AND r.attempt = 1
    AND ${hasState('running')} AND r.lease_expires_at > ${leaseEnd('k.least_ms')}
  OFFSET 0
) r, LATERAL (
  SELECT t.* FROM tasks t
  WHERE t.tenant_id = ${keyOfTenant('k.tenant_id')} AND t.id = r.task_id AND t.active_run_id = k.run_id AND t.last_sequence = 1
  OFFSET 0
) t, LATERAL (
  SELECT message, request FROM task_messages WHERE tenant_id = k.tenant_id AND task_id = t.id AND sequence = 1
  OFFSET 0
) m`,
};

/** What a batch that was appended says of its task. */
export interface AppendedRow {
  id: string;
  push_configs: number;
  child_tasks: number;
}

/**
 * One batch for each of these runs: events, history, task and, at the end of the turn, the run.
 * $1 tenants $2 tasks $3 runs $4 attempts $5 heads that the writers know $6 numbers of events $7 bytes $8 states $9 statuses $10 at
 * $11 metadata $12 whether the turn ends $13 artifacts, NULL = too large for the row $14 outcomes $15 states of the runs
 * $16 their errors. The rows of all events (`logRows`): $17 their payloads (JSON array) $18 the batch of each, from 1 $19 the position of
 * its last event in the batch, from 1 $20 that of the first, NULL = it has one $21 its artifact. Events that begin an artifact anew: $22 the
 * batch of each $23 its position $24 the artifact. Events that say a message: $25 the batch of each $26 its position $27 the message.
 */
export const APPEND: Statement = {
  name: 'runs-append',
  text: `
WITH task AS (
  UPDATE tasks t SET last_sequence = t.last_sequence + k.events,
    state = coalesce(k.state, t.state), status = coalesce(k.status::json, t.status),
    status_at = coalesce(k.status_at, t.status_at), metadata = coalesce(k.metadata::json, t.metadata),
    open_bytes = t.open_bytes + k.bytes,
    active_run_id = CASE WHEN k.ends THEN NULL ELSE t.active_run_id END,
    outcome = CASE WHEN k.ends THEN k.outcome ELSE t.outcome END,
    stored_bytes = t.stored_bytes + CASE WHEN k.ends THEN t.open_bytes + k.bytes ELSE 0 END,
    artifacts = coalesce(k.artifacts::json, t.artifacts),
    artifacts_sequence = CASE WHEN k.artifacts IS NULL THEN t.artifacts_sequence ELSE t.last_sequence + k.events END
  FROM unnest($1::uuid[], $2::uuid[], $3::uuid[], $4::int[], $5::int[], $6::int[], $7::bigint[], $8::smallint[],
    $9::text[], $10::timestamptz[], $11::text[], $12::boolean[], $13::text[], $14::text[], $15::text[], $16::text[])
    WITH ORDINALITY AS k(tenant_id, task_id, run_id, attempt, head, events, bytes, state, status, status_at, metadata, ends, artifacts, outcome,
      run_state, error, batch)
  WHERE t.tenant_id = ${keyOfTenant('k.tenant_id')} AND t.id = k.task_id AND t.active_run_id = k.run_id AND t.attempt = k.attempt
    AND t.last_sequence = k.head AND t.state NOT IN (${TERMINAL_STATES})
  RETURNING t.tenant_id, t.id, t.open_bytes, t.child_tasks, t.push_configs, t.attempt, k.run_id, k.head, k.ends, k.run_state, k.error,
    k.batch
), event AS (
  INSERT INTO task_events (tenant_id, task_id, sequence, first_sequence, attempt, payload, artifact, bytes)
  SELECT task.tenant_id, task.id, task.head + ($19::int[])[e.n], task.head + ($20::int[])[e.n], task.attempt, e.payload,
    ($21::bigint[])[e.n], octet_length(e.payload::text)
  FROM json_array_elements($17::json) WITH ORDINALITY AS e(payload, n), task WHERE task.batch = ($18::int[])[e.n]
), start AS (
  INSERT INTO artifact_starts (tenant_id, task_id, artifact, sequence)
  SELECT task.tenant_id, task.id, s.artifact, task.head + s.position
  FROM unnest($22::int[], $23::int[], $24::bigint[]) AS s(batch, position, artifact), task WHERE task.batch = s.batch
), message AS (
  INSERT INTO task_messages (tenant_id, task_id, sequence, message)
  SELECT task.tenant_id, task.id, task.head + m.position, m.message::json
  FROM unnest($25::int[], $26::int[], $27::text[]) AS m(batch, position, message), task WHERE task.batch = m.batch
), run AS (
  UPDATE runs r SET state = task.run_state, error = task.error, finished_at = now(), lease_expires_at = NULL
  FROM task WHERE task.ends AND r.tenant_id = ${keyOfTenant('task.tenant_id')} AND r.id = task.run_id
), ${GROUP_USAGE_CTE}
SELECT id, push_configs, child_tasks FROM task`,
};

/**
 * A group does not wait long for a lock of somebody else: it would hold all its runs. Without a group only the run waits
 * that the lock is about.
 */
export const WAIT_SHORTLY: Statement = {
  name: 'runs-wait-shortly',
  text: `SELECT set_config('lock_timeout', '500ms', true)`,
};

/**
 * The task of a run that was claimed: $1 tenant $2 run $3 worker. Of a large task it reads only the beginning, so that
 * every run can be claimed.
 */
export const READ_CLAIMED: Statement = {
  name: 'run-read-claimed',
  text: `
SELECT ${taskColumns('NULL', true)}, t.parent_task_id, t.push_configs, r.start_sequence, r.extensions, r.traceparent, r.error_detail,
  extract(epoch FROM clock_timestamp() - r.created_at)::float8 AS waited_seconds,
  m.message, m.request
FROM runs r, tasks t, LATERAL (
  SELECT message, request FROM task_messages
  WHERE tenant_id = ${keyOfTenant('$1')} AND task_id = t.id AND sequence = r.start_sequence
  OFFSET 0
) m
WHERE t.tenant_id = ${keyOfTenant('$1')} AND t.id = ${TASK_OF_RUN}
  AND r.tenant_id = ${keyOfTenant('$1')} AND r.id = $2 AND r.worker_id = $3 AND ${hasState('running')}`,
};

/** $1 tenant $2 run $3 attempt */
export const RETURN_TO_QUEUE: Statement = {
  name: 'run-return-to-queue',
  text: `
UPDATE runs r SET state = 'queued', worker_id = NULL, lease_expires_at = NULL, enqueued_at = now()
WHERE tenant_id = ${keyOfTenant('$1')} AND id = $2 AND attempt = $3 AND ${hasState('running')}
RETURNING ${RUN_COLUMNS}, ${MAY_USE_RESERVED} AS may_use_reserved`,
};

/** $1 tenants $2 runs $3 attempts $4 versions */
export const NOTE_AGENT_VERSIONS: Statement = {
  name: 'runs-note-agent-versions',
  text: `
UPDATE runs r SET agent_version = k.version
FROM unnest($1::uuid[], $2::uuid[], $3::int[], $4::int[]) AS k(tenant_id, run_id, attempt, version)
WHERE r.tenant_id = ${keyOfTenant('k.tenant_id')} AND r.id = k.run_id AND r.attempt = k.attempt`,
};

/** What the sweeps have to do. All but the first two are checked again when the work is taken. */
export interface SweepFindings {
  /** The clock of Postgres at a moment at which it certainly took heartbeats. */
  at: string;
  /** When the next lease ends, pause before an attempt of a run or of a push, or sleep of a suspended run, in ms from then on; null: there is none. */
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
 * the disk, as a heartbeat does. It has no name: it is planned for the tables as they are, not as they once were. The outer
 * columns are always qualified: the same bare name in a subquery would be a column of its table, if there is one.
 */
export const LOOK: Statement = {
  text: `
SELECT look.started_at::text AS at, pg_logical_emit_message(true, 'baton', 'sweep') IS NOT NULL AS written,
  coalesce(leases.first_end < look.started_at, false) AS "expiredRuns",
  (extract(epoch FROM least(
    leases.next_end, (SELECT min(not_before) FROM runs WHERE ${WAITING} AND not_before > look.started_at),
    (SELECT min(due_at) FROM push_configs WHERE due_at > look.started_at),
    (SELECT min(not_before) FROM runs WHERE state = 'suspended' AND not_before > look.started_at)
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
  EXISTS (
    SELECT FROM tasks WHERE parent_task_id IS NOT NULL AND state NOT IN (${TERMINAL_STATES})
  ) AS "openChildren",
  ${isAnyDue('look.started_at')} AS "dueSchedules",
  EXISTS (SELECT FROM push_configs WHERE due_at <= look.started_at) AS "duePushes"
FROM (SELECT clock_timestamp() AS started_at) look, LATERAL (
  SELECT min(lease_expires_at) AS first_end,
    min(lease_expires_at) FILTER (WHERE lease_expires_at >= look.started_at) AS next_end
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
FROM expired e WHERE r.tenant_id = ${keyOfTenant('e.tenant_id')} AND r.id = e.id
RETURNING ${RUN_COLUMNS}, r.enqueued_at IS NULL AS waits, ${MAY_USE_RESERVED} AS may_use_reserved`,
};

/** $1 tenant $2 run */
export const IS_SUSPECT: Statement = {
  name: 'run-is-suspect',
  text: `SELECT id FROM runs r WHERE tenant_id = ${keyOfTenant('$1')} AND id = $2 AND ${hasState('queued')} AND ${SUSPECT}`,
};

/** Off the queue for a while: $1 tenant $2 run $3 how long in ms */
export const POSTPONE: Statement = {
  name: 'run-postpone',
  text: `
UPDATE runs r SET enqueued_at = NULL, not_before = clock_timestamp() + $3::int * interval '1 millisecond'
WHERE tenant_id = ${keyOfTenant('$1')} AND id = $2 AND ${hasState('queued')} AND enqueued_at IS NOT NULL`,
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
FROM stale s WHERE r.tenant_id = ${keyOfTenant('s.tenant_id')} AND r.id = s.id
RETURNING ${RUN_COLUMNS}, ${MAY_USE_RESERVED} AS may_use_reserved`,
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
  WHERE t.tenant_id = ${keyOfTenant('p.tenant_id')} AND t.id = p.task_id AND t.active_run_id = p.id
  FOR NO KEY UPDATE SKIP LOCKED
) t, LATERAL (
  SELECT r.* FROM runs r
  WHERE r.tenant_id = ${keyOfTenant('p.tenant_id')} AND r.id = p.id AND r.state = 'running' AND r.lease_expires_at < $2::timestamptz
  FOR NO KEY UPDATE SKIP LOCKED
) r`,
};

/** Run and task failed, and a dead letter: $1 tenant $2 task $3 run $4 attempt $5 status $6 at $7 message $8 reason */
export const FAIL_POISONED: Statement = {
  name: 'run-fail-poisoned',
  text: `
WITH run AS (
  UPDATE runs SET state = 'failed', deaths = deaths + 1, error = $8, finished_at = now(), lease_expires_at = NULL
  WHERE tenant_id = ${keyOfTenant('$1')} AND id = $3 AND attempt = $4 AND state = 'running'
  RETURNING id, deaths
), task AS (
  UPDATE tasks t SET state = ${TaskState.TASK_STATE_FAILED}, status = $5, status_at = $6,
    last_sequence = t.last_sequence + 1, active_run_id = NULL, stored_bytes = t.stored_bytes + t.open_bytes
  FROM run WHERE t.tenant_id = ${keyOfTenant('$1')} AND t.id = $2 AND t.active_run_id = run.id
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

/** Of one tenant without `oldest`, or of all of them without `tenant`. */
export interface ActiveRow {
  /** Slug. */
  tenant: string | null;
  state: string;
  runs: number;
  /** Age of the oldest run in seconds. Null: nobody asks for that of a suspended one. */
  oldest: number | null;
}

/** $1 how many tenants are named: those with the most runs. It has no name: it is planned for the tables as they are. */
export const COUNT_ACTIVE: Statement = {
  text: `
WITH active AS MATERIALIZED (
  SELECT tenant_id, 'waiting' AS state, count(*)::int AS runs, min(created_at) AS oldest
  FROM runs WHERE ${WAITING} GROUP BY tenant_id
  UNION ALL
  SELECT tenant_id, state, count(*)::int, min(created_at)
  FROM runs WHERE ${IN_FLIGHT} GROUP BY tenant_id, state
  UNION ALL
  SELECT tenant_id, state, count(*)::int, NULL FROM runs WHERE state = 'suspended' GROUP BY tenant_id, state
)
SELECT NULL AS tenant, state, sum(runs)::int AS runs,
  greatest(0, extract(epoch FROM clock_timestamp() - min(oldest)))::float8 AS oldest
FROM active GROUP BY state
UNION ALL
SELECT t.slug, a.state, a.runs, NULL
FROM (SELECT tenant_id FROM active GROUP BY tenant_id ORDER BY sum(runs) DESC, tenant_id LIMIT $1) most
JOIN active a ON a.tenant_id = most.tenant_id
JOIN tenants t ON t.id = a.tenant_id`,
};
