import type { TaskState } from '@baton/a2a';
import type { Statement } from '../connection/database.js';
import { SCHEDULE_BYTES } from '../tenants/usage.store.js';
import type { FiringOutcome, Missed, Overlap, ScheduleContext } from './schedule-records.js';

export interface ScheduleRow {
  tenant_id: string;
  id: string;
  owner: string | null;
  name: string;
  agent: string;
  /** Null where nobody asked for it. */
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
  fired: number;
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
  /** What it takes. */
  bytes: number;
  created_at: Date;
  updated_at: Date;
  now: Date;
}

const columns = (
  message: string,
): string => `s.tenant_id, s.id, s.owner, s.name, s.agent, ${message} AS message, s.cron,
  s.at, s.time_zone, s.overlap, s.missed, s.context, s.starts_at, s.ends_at, s.max_count, s.paused, s.fired,
  s.next_at, s.is_waiting, s.pending_at, s.version, s.last_due_at, s.last_at, s.last_outcome, s.last_reason,
  s.last_task_id, s.created_at, s.updated_at, now() AS now, (
    SELECT state FROM tasks WHERE tenant_id = s.tenant_id AND id = s.last_task_id
  ) AS last_task_state`;

const SCHEDULE = columns('s.message');

/** What a tenant may say, and the next time; `specValues` in this order. */
const SPEC = {
  name: 'text',
  agent: 'text',
  message: 'json',
  cron: 'text',
  at: 'timestamptz',
  time_zone: 'text',
  overlap: 'text',
  missed: 'text',
  context: 'text',
  starts_at: 'timestamptz',
  ends_at: 'timestamptz',
  max_count: 'int',
  paused: 'boolean',
  next_at: 'timestamptz',
};
const SPEC_COLUMNS = Object.keys(SPEC).join(', ');
/** Number of the first parameter of the spec. */
const FIRST = 4;
const SPEC_VALUES = Object.values(SPEC)
  .map((type, index) => `$${FIRST + index}::${type}`)
  .join(', ');
const NEXT_AT = `$${FIRST + Object.keys(SPEC).length - 1}::timestamptz`;

/** Schedules of a tenant are made one after the other, so that their number is exact. $1 tenant */
export const LOCK_CREATES: Statement = {
  name: 'schedule-lock-creates',
  text: `SELECT pg_advisory_xact_lock(hashtextextended('schedules are made ' || $1, 0))`,
};

/** $1 tenant $2 id $3 version, then the spec, then the owner. No row: the name is taken. */
export const CREATE: Statement = {
  name: 'schedule-create-2',
  text: `
INSERT INTO schedules AS s (tenant_id, id, version, ${SPEC_COLUMNS}, wake_at, owner)
VALUES ($1::uuid, $2::uuid, $3::int, ${SPEC_VALUES}, ${NEXT_AT}, $${FIRST + Object.keys(SPEC).length}::text)
ON CONFLICT (tenant_id, name) DO NOTHING
RETURNING ${SCHEDULE}, ${SCHEDULE_BYTES} AS bytes`,
};

/** By name, without their messages. $1 tenant $2 name before the first $3 limit, NULL = all $4 slugs and ids of agents, NULL = all */
export const LIST: Statement = {
  name: 'schedule-list-2',
  text: `
SELECT ${columns('NULL::json')} FROM schedules s
WHERE s.tenant_id = $1 AND s.name > $2 AND ($4::text[] IS NULL OR s.agent = ANY($4)) ORDER BY s.name LIMIT $3::int`,
};

/** $1 tenant $2 id, NULL = any $3 name, NULL = any */
export const FIND: Statement = {
  name: 'schedule-find',
  text: `
SELECT ${SCHEDULE} FROM schedules s
WHERE s.tenant_id = $1 AND ($2::uuid IS NULL OR s.id = $2) AND ($3::text IS NULL OR s.name = $3)`,
};

/** $1 tenant $2 id $3 the version it was read at, then the spec. A time that is being fired stays so. */
export const CHANGE: Statement = {
  name: 'schedule-change-2',
  text: `
WITH present AS (
  SELECT id, ${SCHEDULE_BYTES} AS bytes FROM schedules WHERE tenant_id = $1 AND id = $2 AND version = $3 FOR UPDATE
)
UPDATE schedules s SET (${SPEC_COLUMNS}) = ROW(${SPEC_VALUES}), version = s.version + 1, updated_at = now(),
  is_waiting = s.is_waiting AND s.next_at IS NOT DISTINCT FROM ${NEXT_AT},
  wake_at = CASE WHEN s.pending_at IS NULL THEN ${NEXT_AT} ELSE now() END
FROM present WHERE s.tenant_id = $1 AND s.id = present.id AND s.version = $3
RETURNING ${SCHEDULE}, octet_length(s.message::text) - present.bytes AS bytes`,
};

/** $1 tenant $2 id */
export const REMOVE: Statement = {
  name: 'schedule-remove-2',
  text: `DELETE FROM schedules WHERE tenant_id = $1 AND id = $2 RETURNING name, ${SCHEDULE_BYTES} AS bytes`,
};

/** The lease of a schedule: nobody else takes it within $1 ms. */
const TAKE = `version = s.version + 1, wake_at = now() + $1::int * interval '1 ms'`;

/** Schedules of a suspended tenant wait. When it is resumed they are overdue, and `missed` says what becomes of that. */
const IS_ACTIVE =
  'NOT EXISTS (SELECT FROM tenants WHERE id = schedules.tenant_id AND suspended_at IS NOT NULL)';

/** The longest overdue first. $1 ms that they are the taker's $2 ms that they are overdue, at least $3 limit */
export const TAKE_DUE: Statement = {
  name: 'schedule-take-due-2',
  text: `
UPDATE schedules s SET ${TAKE} FROM (
  SELECT tenant_id, id FROM schedules WHERE wake_at <= now() - $2::int * interval '1 ms' AND ${IS_ACTIVE}
  ORDER BY wake_at LIMIT $3 FOR UPDATE SKIP LOCKED
) due
WHERE s.tenant_id = due.tenant_id AND s.id = due.id
RETURNING ${SCHEDULE}`,
};

/** How far ahead of Postgres' clock the queue's may be. */
const AHEAD = `interval '5 s'`;

/**
 * The queue says that it is $4, which may be a little ahead of our clock. $1 ms that it is the taker's $2 tenant
 * $3 id
 */
export const TAKE_ONE: Statement = {
  name: 'schedule-take-one-2',
  text: `
UPDATE schedules s SET ${TAKE} FROM (
  SELECT tenant_id, id FROM schedules
  WHERE tenant_id = $2 AND id = $3 AND wake_at <= least(greatest(now(), $4::timestamptz), now() + ${AHEAD})
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

/** $1 tenant $2 id $3 version $4 ms until the next look */
export const WAIT: Statement = {
  name: 'schedule-wait',
  text: `
UPDATE schedules SET is_waiting = true, version = version + 1, wake_at = now() + $4::int * interval '1 ms'
WHERE tenant_id = $1 AND id = $2 AND version = $3`,
};

/** $1 tenant $2 id $3 version $4 due $5 outcome $6 reason $7 task, NULL = none was made $8 next time */
export const FINISH: Statement = {
  name: 'schedule-finish',
  text: `
UPDATE schedules SET version = version + 1, pending_at = NULL, is_waiting = false, next_at = $8, wake_at = $8,
  fired = fired + CASE WHEN $7::uuid IS NULL THEN 0 ELSE 1 END,
  last_due_at = $4, last_at = now(), last_outcome = $5, last_reason = $6, last_task_id = coalesce($7, last_task_id)
WHERE tenant_id = $1 AND id = $2 AND version = $3`,
};

/** Stores the outcome of a run on demand: $1 tenant $2 id $3 when $4 outcome $5 reason $6 task, NULL = none */
export const NOTE: Statement = {
  name: 'schedule-note',
  text: `
UPDATE schedules SET version = version + 1,
  last_due_at = $3, last_at = now(), last_outcome = $4, last_reason = $5, last_task_id = coalesce($6, last_task_id)
WHERE tenant_id = $1 AND id = $2`,
};
