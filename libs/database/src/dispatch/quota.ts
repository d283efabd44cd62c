import { countUpTo, DUE, IN_FLIGHT, WAITING } from './run-conditions.js';

/** SQL of the parameters of a quota. */
interface QuotaSql {
  tenant_id: string;
  /** Maximum number of runs in flight; NULL = any number. */
  max_in_flight: string;
  /** Maximum number of waiting runs; NULL = any number. */
  max_waiting: string;
  /** Maximum number in flight, the new run included, if it is to use a reserved slot. */
  reserve_up_to: string;
}

/**
 * `quota`, one row with the route of a new run of a tenant: `dispatched` to the queue, or else it waits; or it is `refused`;
 * and whether few of the tenant's runs are in flight (`may_use_reserved`). It waits behind the waiting runs of its tenant, and
 * while `max_in_flight` of the tenant's runs are in flight.
 */
export const quotaCte = ({
  tenant_id: tenant,
  max_in_flight: window,
  max_waiting: maxWaiting,
  reserve_up_to: reserve,
}: QuotaSql): string => `quota AS MATERIALIZED (
  SELECT dispatched, dispatched AND in_flight < ${reserve} AS may_use_reserved,
    CASE WHEN dispatched OR ${maxWaiting} IS NULL THEN false
    ELSE ${countUpTo(WAITING, tenant, maxWaiting)} >= ${maxWaiting} END AS refused
  FROM (SELECT in_flight, NOT EXISTS (SELECT FROM runs WHERE tenant_id = ${tenant} AND ${WAITING} AND ${DUE})
    AND (${window} IS NULL OR in_flight < ${window}) AS dispatched
    FROM (SELECT ${countUpTo(IN_FLIGHT, tenant, `greatest(${window}, ${reserve})`)} AS in_flight) i) d
)`;

/**
 * CTE `placed`: decides the same for a group of new runs of a tenant, as if they came one after the other. It has the rows of
 * `from` with `dispatched`, `may_use_reserved` and `refused`. Rows of `from` that are `is_known` begin no run: they take no slot, and are not
 * refused.
 * @param from a CTE with `position`, `is_known`, `reserve_up_to` and `max_in_flight` (NULL = any number may be in flight)
 * @param quota `max_in_flight` and `reserve_up_to` are the arrays of those of all rows
 */
export const groupQuotaCte = (
  from: string,
  { tenant_id: tenant, max_in_flight: windows, max_waiting: maxWaiting, reserve_up_to: reserves }: QuotaSql,
): string => `load AS MATERIALIZED (
  SELECT NOT EXISTS (SELECT FROM runs WHERE tenant_id = ${tenant} AND ${WAITING} AND ${DUE}) AS is_calm,
    ${countUpTo(IN_FLIGHT, tenant, 'w.most')} AS in_flight
  FROM (SELECT max(m) AS most FROM unnest(${windows} || ${reserves}) AS m) w
), slotted AS MATERIALIZED (
  SELECT n.*, load.is_calm AND bool_and(n.is_known OR n.max_in_flight IS NULL
    OR load.in_flight + n.number <= n.max_in_flight) OVER (ORDER BY n.position) AS dispatched,
    load.in_flight + n.number <= n.reserve_up_to AS are_few
  FROM (SELECT f.*, count(*) FILTER (WHERE NOT f.is_known) OVER (ORDER BY f.position) AS number FROM ${from} f) n, load
), queue AS MATERIALIZED (
  SELECT CASE WHEN ${maxWaiting} IS NULL OR NOT EXISTS (SELECT FROM slotted WHERE NOT dispatched) THEN 0
    ELSE ${countUpTo(WAITING, tenant, maxWaiting)} END AS waiting
), placed AS MATERIALIZED (
  SELECT s.*, s.dispatched AND s.are_few AS may_use_reserved, ${maxWaiting} IS NOT NULL AND NOT s.is_known AND NOT s.dispatched AND queue.waiting
    + count(*) FILTER (WHERE NOT s.is_known AND NOT s.dispatched) OVER (ORDER BY s.position) > ${maxWaiting} AS refused
  FROM slotted s, queue
)`;
