import { keyOfTenant } from '../connection/row-security.js';
import { ownerInReports } from '../tasks/owner-in-reports.js';
import { readableMetadata } from '../tasks/readable-metadata.js';

/** Upper bound: the delegation depth is limited. */
const MAX_ANCESTORS = 100;

/** The start of the only period of a life. */
const LIFE = `date '1970-01-01'`;
const TODAY = `(clock_timestamp() AT TIME ZONE 'UTC')::date`;

/** SQL of the first day of the present period. @param period SQL of a CapPeriod */
export const startOf = (period: string): string =>
  `CASE ${period} WHEN 'life' THEN ${LIFE} ELSE date_trunc(${period}, ${TODAY}::timestamp)::date END`;

/** SQL of the first day after it, as text. Null for a life. */
export const endOf = (period: string): string =>
  `CASE ${period} WHEN 'life' THEN NULL
    ELSE (date_trunc(${period}, ${TODAY}::timestamp) + ('1 ' || ${period})::interval)::date::text END`;

/**
 * CTEs of a `WITH RECURSIVE`: `subjects` has one row with the subjects that a call of a run counts against, and `caps` their caps.
 * Null: the run is unknown.
 * @param lock keep the caps from being deleted until the transaction ends
 */
export const capCtes = (tenant: string, run: string, lock = ''): string => `up AS (
  SELECT t.id, t.parent_task_id, t.agent_id, t.owner, t.metadata, 1 AS length
  FROM runs r JOIN tasks t ON t.tenant_id = ${keyOfTenant(tenant)} AND t.id = r.task_id
  WHERE r.tenant_id = ${keyOfTenant(tenant)} AND r.id = ${run}
  UNION ALL
  SELECT p.id, p.parent_task_id, p.agent_id, p.owner, p.metadata, up.length + 1 FROM up, LATERAL (
    SELECT id, parent_task_id, agent_id, owner, metadata FROM tasks
    WHERE tenant_id = ${keyOfTenant(tenant)} AND id = up.parent_task_id
  ) p WHERE up.length < ${MAX_ANCESTORS}
), subjects AS (
  SELECT task.agent_id, CASE WHEN task.id IS NOT NULL THEN ${ownerInReports('task.owner')} END AS owner, root.id AS root_task_id,
    ${readableMetadata('root.metadata', `-> 'baton.schedule' ->> 'id'`)} AS schedule_id
  FROM (SELECT) AS one
  LEFT JOIN (SELECT * FROM up ORDER BY length LIMIT 1) task ON true
  LEFT JOIN (SELECT * FROM up ORDER BY length DESC LIMIT 1) root ON true
), caps AS (
  SELECT c.*, s.subject AS of, ${startOf('c.period')} AS period_start
  FROM spending_caps c, subjects, LATERAL (SELECT ${subjectOf('c.kind', 'subjects')} AS subject) s
  WHERE c.tenant_id = ${tenant} AND s.subject IS NOT NULL AND c.subject IN ('*', s.subject)
  ${lock}
)`;

/** SQL of the subject of a kind in a row with the columns of `subjects`. */
export function subjectOf(kind: string, row: string): string {
  return `CASE ${kind} WHEN 'tenant' THEN '' WHEN 'agent' THEN ${row}.agent_id WHEN 'caller' THEN ${row}.owner
    WHEN 'token' THEN CASE WHEN ${row}.owner LIKE 'token:%' THEN substr(${row}.owner, 7) END
    WHEN 'schedule' THEN ${row}.schedule_id WHEN 'task' THEN ${row}.root_task_id::text END`;
}

/**
 * CTEs after `capCtes`: `full_caps` has the caps without room. A call without costs fits into each.
 * @param id the reservation that is made
 * @param micros the amount to spend
 */
export const fullCapCtes = (tenant: string, id: string, micros: string): string => `others AS (
  SELECT * FROM token_reservations
  WHERE tenant_id = ${tenant} AND run_id <> ${id} AND expires_at > clock_timestamp()
), checked AS (
  SELECT caps.*, coalesce(n.micros, 0) AS used, coalesce(r.all_of, 0) AS reserved,
    coalesce(a.micros, 0) AS allowed, coalesce(a.used, 0) + coalesce(r.in_tree, 0) AS allowed_used
  FROM subjects CROSS JOIN caps
  LEFT JOIN spending_counts n
    ON n.tenant_id = caps.tenant_id AND n.cap_id = caps.id AND n.subject = caps.of AND n.period_start = caps.period_start
  LEFT JOIN spending_allowances a ON a.tenant_id = caps.tenant_id AND a.cap_id = caps.id AND a.subject = caps.of
    AND a.period_start = caps.period_start AND a.root_task_id = subjects.root_task_id
  CROSS JOIN LATERAL (
    SELECT sum(o.micros) AS all_of, sum(o.micros) FILTER (WHERE o.root_task_id = subjects.root_task_id) AS in_tree
    FROM others o WHERE ${subjectOf('caps.kind', 'o')} = caps.of
  ) r
), full_caps AS (
  SELECT * FROM checked WHERE ${micros} > 0 AND used + reserved + ${micros} > micros AND allowed_used + ${micros} > allowed
)`;

/** SQL of the full caps as JSON. Caps that fail a task are first. */
export const FULL_CAPS = `coalesce((
  SELECT json_agg(json_build_object('id', id, 'kind', kind, 'subject', subject, 'name', name, 'period', period, 'micros', micros,
    'onLimit', on_limit, 'setBy', set_by, 'periodStart', CASE WHEN period <> 'life' THEN period_start END,
    'periodEnd', ${endOf('period')}, 'of', of, 'usedMicros', used, 'reservedMicros', reserved,
    'allowedMicros', allowed) ORDER BY set_by, on_limit DESC, id)
  FROM full_caps
), '[]')`;

/** When a count was warned about: with the precision of its column. */
const NOW = `date_trunc('milliseconds', now())`;

/** Whether 80 % of a cap are used. */
const isNearlyFull = (used: string, cap: string): string => `${used} * 5 >= ${cap} * 4`;

/** When the count that is added to crosses 80 %. Null: it does not. */
const WARNED = `CASE WHEN ${isNearlyFull(
  '(n.micros + excluded.micros)',
  '(SELECT c.micros FROM spending_caps c WHERE c.tenant_id = n.tenant_id AND c.id = n.cap_id)',
)} THEN ${NOW} END`;

/**
 * CTEs after `capCtes` that count spending: first against the allowance of the task tree beyond a cap, else against the cap. In one
 * order, so that no two transactions deadlock.
 * @param condition whether it is counted
 */
export const countCtes = (micros: string, condition: string): string => `drawn AS (
  UPDATE spending_allowances a SET used = a.used + ${micros}, updated_at = now() FROM caps, subjects
  WHERE a.tenant_id = caps.tenant_id AND a.cap_id = caps.id AND a.subject = caps.of AND a.period_start = caps.period_start
    AND a.root_task_id = subjects.root_task_id AND a.used < a.micros AND ${condition}
  RETURNING a.cap_id
), counted AS (
  INSERT INTO spending_counts AS n (tenant_id, cap_id, subject, period_start, micros, warned_at, notice_at)
  SELECT tenant_id, id, of, period_start, ${micros}, w.at, w.at
  FROM caps, LATERAL (SELECT CASE WHEN ${isNearlyFull(micros, 'caps.micros')} THEN ${NOW} END AS at) w
  WHERE id NOT IN (SELECT cap_id FROM drawn) AND ${condition}
  ORDER BY id
  ON CONFLICT (tenant_id, cap_id, subject, period_start) DO UPDATE SET micros = n.micros + excluded.micros, updated_at = now(),
    warned_at = coalesce(n.warned_at, ${WARNED}), notice_at = CASE WHEN n.warned_at IS NULL THEN ${WARNED} ELSE n.notice_at END
)`;
