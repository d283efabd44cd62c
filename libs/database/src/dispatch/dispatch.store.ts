import { type LimitOverrides, storedLimits } from '@baton/config';
import { Injectable } from '@nestjs/common';
import { Database } from '../connection/database.js';
import { type Inputs, list, one, type Statement, statement, type Values } from '../sql/statement.js';
import { countUpTo, DUE, IN_FLIGHT, WAITING } from './run-conditions.js';
import { RUN_COLUMNS, type RunToEnqueue, type RunToEnqueueRow, runToEnqueueOf } from './run-key.js';

/**
 * Locks the quotas of these tenants until the transaction ends: $1 tenants. It is a separate statement, so that the
 * next one sees everything that was committed before. Sorted, so that no two transactions deadlock.
 */
export const LOCK_TENANTS: Statement = {
  name: 'dispatch-lock-tenants',
  text: `
SELECT pg_advisory_xact_lock(key) FROM (
  SELECT hashtextextended('baton dispatch ' || id, 0) AS key FROM unnest($1::uuid[]) AS t(id) ORDER BY 1
) k`,
};

interface SlotUsageRow {
  slots: number;
  reserved: number;
  workers: string[] | null;
  /** Runs in flight, by tenant. */
  in_flight: Record<string, number> | null;
  waiting: string[];
  /** The operator's limits for waiting tenants, if any. */
  limits: Record<string, unknown> | null;
}

/**
 * $1 how old the last heartbeat of a live worker may be, in ms $2 the tenant after which to begin $3 maximum number of tenants.
 * Steps from tenant to tenant through the index of waiting runs, so its cost does not depend on the number of runs.
 */
export const READ_SLOT_USAGE: Statement = {
  name: 'dispatch-read-slot-usage',
  text: `
WITH RECURSIVE waiting AS (
  (SELECT tenant_id, 1 AS n FROM runs WHERE ${WAITING} AND ${DUE} AND tenant_id > $2 ORDER BY tenant_id LIMIT 1)
  UNION ALL
  SELECT (
    SELECT tenant_id FROM runs WHERE ${WAITING} AND ${DUE} AND tenant_id > w.tenant_id ORDER BY tenant_id LIMIT 1
  ), n + 1
  FROM waiting w WHERE w.tenant_id IS NOT NULL AND n < $3::int
)
SELECT
  live.slots, live.reserved, live.workers,
  (SELECT json_object_agg(tenant_id, n) FROM (
     SELECT tenant_id, count(*) AS n FROM runs WHERE ${IN_FLIGHT} GROUP BY tenant_id) o) AS in_flight,
  ARRAY(SELECT tenant_id::text FROM waiting WHERE tenant_id IS NOT NULL) AS waiting,
  (SELECT json_object_agg(id, limits) FROM tenants
   WHERE id = ANY(ARRAY(SELECT tenant_id FROM waiting)) AND limits::text <> '{}') AS limits
FROM (
  SELECT coalesce(sum(concurrency), 0)::int AS slots, coalesce(sum(reserved_slots), 0)::int AS reserved,
    array_agg(id) FILTER (WHERE version IS NOT NULL AND seen_at > clock_timestamp() - $1::int / 4 * interval '1 millisecond') AS workers
  FROM workers WHERE seen_at > clock_timestamp() - $1::int * interval '1 millisecond'
) live`,
};

const GRANT = {
  tenant_id: ['uuid', ({ tenantId }) => tenantId],
  slots: ['int', ({ slots }) => slots],
  /** NULL = no limit. */
  max_in_flight: ['int', ({ maxInFlight }) => maxInFlight],
} satisfies Inputs<Grant>;
const ALL = {
  /** Maximum in flight of all tenants together. */
  capacity: ['int', ({ capacity }) => capacity],
  /** Maximum in flight of a tenant whose run may use a reserved slot. */
  reserve_up_to: ['int', ({ reserve }) => reserve.upTo],
  reserved: ['int', ({ reserve }) => reserve.slots],
} satisfies Inputs<{ capacity: number; reserve: Reserve }>;

/**
 * Puts the oldest waiting runs of tenants on the queue, and never waits for a lock. A tenant without a run in flight gets one also if
 * the capacity is used up, as at acceptance. Tenants with few get some as long as the capacity is exceeded by no more than the reserved
 * slots. The statement has no name: it is planned for the tables as they are, not as they once were.
 */
const DISPATCH = statement(
  undefined,
  { grants: list(GRANT), all: one(ALL) },
  ({ grants, all }) => `
WITH found AS MATERIALIZED (
  SELECT r.tenant_id, r.id, k.position,
    k.in_flight + row_number() OVER (PARTITION BY k.position ORDER BY r.created_at, r.id) AS number
  FROM (
    SELECT *, ${countUpTo(IN_FLIGHT, 'u.tenant_id', all.reserve_up_to)} AS in_flight FROM ${grants.rows('u', 'position')}
  ) k, LATERAL (
    SELECT tenant_id, id, created_at FROM runs
    WHERE tenant_id = k.tenant_id AND ${WAITING} AND ${DUE}
    ORDER BY created_at, id
    LIMIT least(k.slots, CASE WHEN k.max_in_flight IS NULL THEN k.slots
      ELSE greatest(k.max_in_flight - ${countUpTo(IN_FLIGHT, 'k.tenant_id', 'k.max_in_flight')}, 0) END)
    FOR UPDATE SKIP LOCKED
  ) r
), chosen AS MATERIALIZED (
  SELECT tenant_id, id, number <= ${all.reserve_up_to} AS may_use_reserved FROM found
  ORDER BY number = 1 DESC, number <= ${all.reserve_up_to} DESC, position
  LIMIT (
    SELECT greatest(${all.capacity} - taken, firsts, least(few, ${all.capacity} + ${all.reserved} - taken)) FROM
      (SELECT count(*) FILTER (WHERE number = 1) AS firsts, count(*) FILTER (WHERE number <= ${all.reserve_up_to}) AS few FROM found) f,
      (SELECT count(*) AS taken FROM (SELECT FROM runs WHERE ${IN_FLIGHT} LIMIT ${all.capacity} + ${all.reserved}) r) n
  )
), dispatched AS (
  UPDATE runs r SET enqueued_at = clock_timestamp() FROM chosen c
  WHERE r.tenant_id = c.tenant_id AND r.id = c.id
  RETURNING ${RUN_COLUMNS}, r.created_at, c.may_use_reserved
)
SELECT tenant_id, task_id, run_id, attempt, may_use_reserved FROM dispatched ORDER BY created_at, run_id`,
);

/** Maximum number of tenants of one read. The next read continues after them. */
const MAX_TENANTS = 256;
/** A tenant id before all others. */
const BEFORE_ALL = '00000000-0000-0000-0000-000000000000';

/** How many dispatch slots are taken at one moment. */
export interface SlotUsage {
  /** How many runs the live workers can execute at once. */
  workerSlots: number;
  /** How many of these slots the workers reserve for tenants with few runs in flight. Those of earlier releases reserve none. */
  reservedSlots: number;
  /**
   * Ids of those with a heartbeat in the last quarter of `liveMs`. Not those of release 0.1.0: they do not
   * listen for runs that are claimed for them.
   */
  workers: readonly string[];
  /** Runs on the queue or running, by tenant. */
  inFlight: ReadonlyMap<string, number>;
  /** Tenants with runs that wait for a slot, and the operator's limits for them. */
  waiting: ReadonlyMap<string, LimitOverrides>;
}

/** Slots that are reserved for tenants with few runs in flight. */
export interface Reserve {
  /** A tenant has few runs in flight if there are no more than these. */
  upTo: number;
  /** Slots of workers that only their runs may take. */
  slots: number;
}

/** Dispatch slots for the waiting runs of a tenant. */
export interface Grant {
  tenantId: string;
  slots: number;
  /** Maximum runs in flight; null = no limit. */
  maxInFlight: number | null;
}

/** Decides which runs may be on the queue. The queue only delivers. */
@Injectable()
export class DispatchStore {
  /** The next read begins after this tenant. */
  private afterTenant = BEFORE_ALL;

  constructor(private readonly database: Database) {}

  /** @param liveMs how old the last heartbeat of a live worker may be, in ms */
  async readSlotUsage(liveMs: number): Promise<SlotUsage> {
    const values = [liveMs, this.afterTenant, MAX_TENANTS];
    const [row] = await this.database.systemQuery<SlotUsageRow>(READ_SLOT_USAGE, values);
    const waiting = row?.waiting ?? [];
    // The next read continues after these tenants.
    const partial = waiting.length === MAX_TENANTS || this.afterTenant !== BEFORE_ALL;
    this.afterTenant = (waiting.length === MAX_TENANTS && waiting.at(-1)) || BEFORE_ALL;
    if (partial && waiting.length === 0) return this.readSlotUsage(liveMs);
    return {
      workerSlots: row?.slots ?? 0,
      reservedSlots: row?.reserved ?? 0,
      workers: row?.workers ?? [],
      inFlight: new Map(Object.entries(row?.in_flight ?? {})),
      waiting: new Map(waiting.map((tenantId) => [tenantId, storedLimits(row?.limits?.[tenantId])])),
    };
  }

  /**
   * Give dispatch slots to the oldest waiting runs of tenants.
   * @param capacity maximum runs in flight of all tenants together
   * @param reserve slots for tenants with few runs in flight
   * @returns the runs, oldest first; they must be enqueued now
   */
  async dispatch(
    grants: readonly Grant[],
    capacity: number,
    reserve: Reserve = { upTo: 1, slots: 0 },
  ): Promise<RunToEnqueue[]> {
    const limited = grants.filter(({ maxInFlight }) => maxInFlight !== null);
    const values = DISPATCH.values({ grants, all: { capacity, reserve } });
    const lock: [Statement, Values] = [LOCK_TENANTS, [limited.map(({ tenantId }) => tenantId)]];
    const answers = await this.database.systemQueries([
      ...(limited.length > 0 ? [lock] : []),
      [DISPATCH, values],
    ]);
    return (answers.at(-1) as RunToEnqueueRow[]).map(runToEnqueueOf);
  }
}
