import { keyOfTenant } from '../connection/row-security.js';
import { ownerOf } from '../usage/usage-hours.store.js';

/** Larger metadata are not read. */
const METADATA_BYTES = 64 * 1024;
/** Escapes that a `json` may hold and JSON operators of Postgres refuse: U+0000 and surrogates. */
const UNREADABLE = String.raw`'\\u(0000|d[89a-f])'`;
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
 * CTEs of a `WITH RECURSIVE`: `subjects` has one row that says whom a call of a run counts against, and `caps` the caps of these.
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
  SELECT task.agent_id, CASE WHEN task.id IS NOT NULL THEN ${ownerOf('task.owner')} END AS owner, root.id AS root_task_id,
    CASE WHEN pg_column_size(root.metadata) > ${METADATA_BYTES} THEN NULL
      WHEN root.metadata::text ~* ${UNREADABLE} THEN NULL
      ELSE root.metadata -> 'baton.schedule' ->> 'id' END AS schedule_id
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
