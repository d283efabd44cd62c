import { Message, type TaskState } from '@baton/a2a';
import type { Statement } from '../connection/database.js';
import { TERMINAL_STATES } from '../tasks/task-row.js';
import { SCHEDULE_BYTES } from '../tenants/count-usage.js';
import { type Inputs, one, statement } from '../sql/statement.js';
import { takeInTurns } from '../sql/take-in-turns.js';
import type {
  FiringOutcome,
  FiringResult,
  Missed,
  Overlap,
  ScheduleContext,
  ScheduleSpec,
} from './schedule-records.js';

export interface ScheduleRow {
  tenant_id: string;
  id: string;
  owner: string | null;
  name: string;
  agent: string;
  /** Null if it was not requested. */
  message: object | null;
  cron: string | null;
  at: Date | null;
  time_zone: string;
  overlap: Overlap;
  missed: Missed;
  context: ScheduleContext;
  starts_at: Date | null;
  ends_at: Date | null;
  max_count: number | null;
  paused: boolean;
  paused_reason: string | null;
  fired: number;
  skipped_count: number;
  missed_count: number;
  refused_count: number;
  next_at: Date | null;
  is_waiting: boolean;
  pending_at: Date | null;
  version: number;
  last_due_at: Date | null;
  last_at: Date | null;
  last_outcome: FiringOutcome | null;
  last_reason: string | null;
  last_task_id: string | null;
  last_task_state: TaskState | null;
  recent_tasks: { id: string; state: TaskState; created_at: string }[];
  /** What it takes. */
  bytes: number;
  created_at: Date;
  updated_at: Date;
  now: Date;
}

const columns = (
  message: string,
): string => `s.tenant_id, s.id, s.owner, s.name, s.agent, ${message} AS message, s.cron,
  s.at, s.time_zone, s.overlap, s.missed, s.context, s.starts_at, s.ends_at, s.max_count, s.paused, s.paused_reason, s.fired,
  s.skipped_count, s.missed_count, s.refused_count,
  s.next_at, s.is_waiting, s.pending_at, s.version, s.last_due_at, s.last_at, s.last_outcome, s.last_reason,
  s.last_task_id, s.created_at, s.updated_at, now() AS now, (
    SELECT t.state FROM tasks t WHERE t.tenant_id = s.tenant_id AND t.id = s.last_task_id
  ) AS last_task_state, coalesce((
    SELECT json_agg(json_build_object('id', t.id, 'state', t.state, 'created_at', t.created_at) ORDER BY recent.place)
    FROM unnest(s.recent_task_ids) WITH ORDINALITY AS recent(id, place)
    JOIN tasks t ON t.tenant_id = s.tenant_id AND t.id = recent.id
  ), '[]') AS recent_tasks`;

const SCHEDULE = columns('s.message');

/** Fields that a tenant sets, and the next time. */
const SPEC = {
  name: ['text', ({ spec }) => spec.name],
  agent: ['text', ({ spec }) => spec.agent],
  message: ['json', ({ spec }) => JSON.stringify(Message.toJSON(spec.message))],
  cron: ['text', ({ spec }) => spec.cron],
  at: ['timestamptz', ({ spec }) => spec.at],
  time_zone: ['text', ({ spec }) => spec.timeZone],
  overlap: ['text', ({ spec }) => spec.overlap],
  missed: ['text', ({ spec }) => spec.missed],
  context: ['text', ({ spec }) => spec.context],
  starts_at: ['timestamptz', ({ spec }) => spec.startsAt],
  ends_at: ['timestamptz', ({ spec }) => spec.endsAt],
  max_count: ['int', ({ spec }) => spec.maxCount],
  paused: ['boolean', ({ spec }) => spec.paused],
  next_at: ['timestamptz', ({ nextAt }) => nextAt],
} satisfies Inputs<{ spec: ScheduleSpec; nextAt: Date | null }>;
const SPEC_COLUMNS = Object.keys(SPEC).join(', ');
/** SQL of the values of `SPEC_COLUMNS`. */
const specValues = (spec: Record<keyof typeof SPEC, string>): string => Object.values(spec).join(', ');

/** A schedule at the version that it was read at. */
const VERSION = {
  tenant_id: ['uuid', ({ tenantId }) => tenantId],
  id: ['uuid', ({ id }) => id],
  version: ['int', ({ version }) => version],
} satisfies Inputs<{ tenantId: string; id: string; version: number }>;

/** Schedules of a tenant are made one after the other, so that their number is exact. $1 tenant */
export const LOCK_CREATES: Statement = {
  name: 'schedule-lock-creates',
  text: `SELECT pg_advisory_xact_lock(hashtextextended('schedules are made ' || $1, 0))`,
};

/** No row: the name is taken. */
export const CREATE = statement(
  'schedule-create-3',
  {
    schedule: one(VERSION),
    spec: one(SPEC),
    by: one({ owner: ['text', (owner: string | null | undefined) => owner] }),
  },
  ({ schedule, spec, by }) => `
INSERT INTO schedules AS s (tenant_id, id, version, ${SPEC_COLUMNS}, wake_at, owner)
VALUES (${schedule.tenant_id}, ${schedule.id}, ${schedule.version}, ${specValues(spec)}, ${spec.next_at}, ${by.owner})
ON CONFLICT (tenant_id, name) DO NOTHING
RETURNING ${SCHEDULE}, ${SCHEDULE_BYTES} AS bytes`,
);

/** By name, without their messages. $1 tenant $2 name before the first $3 limit, NULL = all $4 slugs and ids of agents, NULL = all */
export const LIST: Statement = {
  name: 'schedule-list-3',
  text: `
SELECT ${columns('NULL::json')} FROM schedules s
WHERE s.tenant_id = $1 AND s.name > $2 AND ($4::text[] IS NULL OR s.agent = ANY($4)) ORDER BY s.name LIMIT $3::int`,
};

/** $1 tenant $2 id, NULL = any $3 name, NULL = any */
export const FIND: Statement = {
  name: 'schedule-find-2',
  text: `
SELECT ${SCHEDULE} FROM schedules s
WHERE s.tenant_id = $1 AND ($2::uuid IS NULL OR s.id = $2) AND ($3::text IS NULL OR s.name = $3)`,
};

/** A time that is being fired stays so. */
export const CHANGE = statement(
  'schedule-change-4',
  { schedule: one(VERSION), spec: one(SPEC) },
  ({ schedule, spec }) => `
WITH present AS (
  SELECT id, ${SCHEDULE_BYTES} AS bytes FROM schedules
  WHERE tenant_id = ${schedule.tenant_id} AND id = ${schedule.id} AND version = ${schedule.version}
)
UPDATE schedules s SET (${SPEC_COLUMNS}) = ROW(${specValues(spec)}), version = s.version + 1, updated_at = now(),
  paused_reason = CASE WHEN ${spec.paused} THEN s.paused_reason END,
  is_waiting = s.is_waiting AND s.next_at IS NOT DISTINCT FROM ${spec.next_at},
  wake_at = CASE WHEN s.pending_at IS NULL THEN ${spec.next_at} ELSE now() END
FROM present WHERE s.tenant_id = ${schedule.tenant_id} AND s.id = present.id AND s.version = ${schedule.version}
RETURNING ${SCHEDULE}, octet_length(s.message::text) - present.bytes AS bytes`,
);

/** $1 tenant $2 id */
export const REMOVE: Statement = {
  name: 'schedule-remove-2',
  text: `DELETE FROM schedules WHERE tenant_id = $1 AND id = $2 RETURNING name, ${SCHEDULE_BYTES} AS bytes`,
};

/** The lease of a schedule: no other worker claims it within $1 ms. */
const TAKE = `version = s.version + 1, wake_at = now() + $1::int * interval '1 ms'`;

/** Schedules of a suspended tenant wait. When it is resumed they are overdue, and `missed` decides about these times. */
const IS_ACTIVE =
  'NOT EXISTS (SELECT FROM tenants t WHERE t.id = s.tenant_id AND t.suspended_at IS NOT NULL)';

/** A time of the schedule `s` waits for the previous task, and that task has ended or is gone. */
const MAY_GO_ON = `s.is_waiting AND NOT EXISTS (
    SELECT FROM tasks t
    WHERE t.tenant_id = s.tenant_id AND t.id = s.last_task_id AND t.state NOT IN (${TERMINAL_STATES})
  )`;

/** Whether there is a schedule to take. @param at a moment, as SQL */
export const isAnyDue = (at: string): string => `(
    EXISTS (SELECT FROM schedules s WHERE s.wake_at <= ${at} AND ${IS_ACTIVE})
    OR EXISTS (SELECT FROM schedules s WHERE ${MAY_GO_ON} AND ${IS_ACTIVE})
  )`;

/** $1 ms that they are the taker's $2 ms that they are overdue, at least $3 limit */
export const TAKE_DUE: Statement = {
  name: 'schedule-take-due-4',
  text: `
WITH taken AS MATERIALIZED (${takeInTurns({
    table: 'schedules',
    alias: 's',
    columns: 's.tenant_id, s.id',
    isDue: `(s.wake_at <= now() - $2::int * interval '1 ms' OR (${MAY_GO_ON})) AND ${IS_ACTIVE}`,
    since: 's.wake_at',
    limit: '$3',
  })}
)
UPDATE schedules s SET ${TAKE} FROM taken
WHERE s.tenant_id = taken.tenant_id AND s.id = taken.id
RETURNING ${SCHEDULE}`,
};

/** Seconds since the longest overdue schedule was due. Leased schedules count until their time is handled. */
export const OVERDUE: Statement = {
  text: `
SELECT coalesce(extract(epoch FROM now() - min(coalesce(s.pending_at, s.next_at))), 0)::float8 AS seconds
FROM schedules s
WHERE s.wake_at <= now() + interval '10 minutes' AND coalesce(s.pending_at, s.next_at) <= now() AND NOT s.is_waiting
  AND ${IS_ACTIVE}`,
};

/** How far ahead of Postgres' clock the queue's may be. */
const AHEAD = `interval '5 s'`;

/**
 * $4 is the time of the queue, which may be a little ahead of our clock. $1 ms that it is the taker's $2 tenant
 * $3 id
 */
export const TAKE_ONE: Statement = {
  name: 'schedule-take-one-3',
  text: `
UPDATE schedules s SET ${TAKE} FROM (
  SELECT s.tenant_id, s.id FROM schedules s
  WHERE s.tenant_id = $2 AND s.id = $3 AND s.wake_at <= least(greatest(now(), $4::timestamptz), now() + ${AHEAD})
    AND ${IS_ACTIVE}
  FOR UPDATE SKIP LOCKED
) due
WHERE s.tenant_id = due.tenant_id AND s.id = due.id
RETURNING ${SCHEDULE}`,
};

/** The next time is being fired: $1 tenant $2 id $3 version */
export const BEGIN: Statement = {
  name: 'schedule-begin',
  text: `
UPDATE schedules SET pending_at = next_at, version = version + 1
WHERE tenant_id = $1 AND id = $2 AND version = $3 RETURNING version`,
};

/** The sweep takes it as soon as the previous task has ended. $1 tenant $2 id $3 version $4 ms until it is due without that */
export const WAIT: Statement = {
  name: 'schedule-wait',
  text: `
UPDATE schedules SET is_waiting = true, version = version + 1, wake_at = now() + $4::int * interval '1 ms'
WHERE tenant_id = $1 AND id = $2 AND version = $3`,
};

/** Tasks that a schedule names: the newest. */
const MAX_RECENT = 10;
/** SQL that puts a task, if there is one, before the recent tasks. */
const withRecent = (task: string): string =>
  `recent_task_ids = CASE WHEN ${task} IS NULL THEN recent_task_ids ELSE (${task} || recent_task_ids)[1:${MAX_RECENT}] END`;

const RESULT = {
  due_at: ['timestamptz', ({ dueAt }) => dueAt],
  outcome: ['text', ({ outcome }) => outcome],
  reason: ['text', ({ reason }) => reason],
  /** NULL = none was made. */
  task_id: ['uuid', ({ taskId }) => taskId],
  next_at: ['timestamptz', ({ nextAt }) => nextAt],
  skipped: ['int', ({ passed }) => passed.skipped],
  missed: ['int', ({ passed }) => passed.missed],
  refused: ['int', ({ passed }) => passed.refused],
  /** NULL = the schedule continues. */
  pause_reason: ['text', ({ pauseReason }) => pauseReason],
} satisfies Inputs<FiringResult>;

export const FINISH = statement(
  'schedule-finish-3',
  { schedule: one(VERSION), result: one(RESULT) },
  ({ schedule, result }) => `
UPDATE schedules SET version = version + 1, pending_at = NULL, is_waiting = false, next_at = ${result.next_at}, wake_at = ${result.next_at},
  fired = fired + CASE WHEN ${result.task_id} IS NULL THEN 0 ELSE 1 END,
  skipped_count = skipped_count + ${result.skipped}, missed_count = missed_count + ${result.missed}, refused_count = refused_count + ${result.refused},
  paused = paused OR ${result.pause_reason} IS NOT NULL, paused_reason = coalesce(${result.pause_reason}, paused_reason),
  last_due_at = ${result.due_at}, last_at = now(), last_outcome = ${result.outcome}, last_reason = ${result.reason},
  last_task_id = coalesce(${result.task_id}, last_task_id), ${withRecent(result.task_id)}
WHERE tenant_id = ${schedule.tenant_id} AND id = ${schedule.id} AND version = ${schedule.version} RETURNING version`,
);

/** The time that is due is refused, and there is no next one. $1 tenant $2 id $3 version $4 why */
export const PAUSE: Statement = {
  name: 'schedule-pause',
  text: `
UPDATE schedules SET version = version + 1, pending_at = NULL, is_waiting = false, next_at = NULL, wake_at = NULL,
  paused = true, paused_reason = $4, refused_count = refused_count + 1,
  last_due_at = coalesce(pending_at, next_at, now()), last_at = now(), last_outcome = 'refused', last_reason = $4
WHERE tenant_id = $1 AND id = $2 AND version = $3 RETURNING version`,
};

/** The outcome of a run on demand. */
interface RunOutcome extends Pick<FiringResult, 'dueAt' | 'outcome' | 'reason'> {
  tenantId: string;
  id: string;
  taskId: string | null;
}

const OUTCOME = {
  tenant_id: ['uuid', ({ tenantId }) => tenantId],
  id: ['uuid', ({ id }) => id],
  due_at: ['timestamptz', ({ dueAt }) => dueAt],
  outcome: ['text', ({ outcome }) => outcome],
  reason: ['text', ({ reason }) => reason],
  /** NULL = none was made. */
  task_id: ['uuid', ({ taskId }) => taskId],
} satisfies Inputs<RunOutcome>;

/** Stores the outcome of a run on demand. */
export const NOTE = statement(
  'schedule-note-2',
  { run: one(OUTCOME) },
  ({ run }) => `
UPDATE schedules SET version = version + 1, last_due_at = ${run.due_at}, last_at = now(), last_outcome = ${run.outcome},
  last_reason = ${run.reason}, last_task_id = coalesce(${run.task_id}, last_task_id), ${withRecent(run.task_id)}
WHERE tenant_id = ${run.tenant_id} AND id = ${run.id}`,
);
