import { Injectable } from '@nestjs/common';
import type { QueryResultRow } from 'pg';
import { Database, type Statement, type Transaction } from '../connection/database.js';
import { IN_FLIGHT, WAITING } from '../dispatch/run-conditions.js';

// What a task stores are the bytes of its messages, events and journal as JSON. Those of a turn that is running are
// `open_bytes`; they are added to `stored_bytes`, and to the tenant's usage, in the statement that ends the turn.
// Besides its tasks a tenant keeps a catalog: versions of agents, secrets and schedules (`catalog_bytes`, tenant-room.ts). The values that agents
// keep for contexts are counted with it, by the count alone.
// Every tenant has a row of usage, made by the first count. Without a limit, what a new task brings is added by the next count
// alone (every hour), so that acceptance locks nothing. It is the last row that a transaction locks, and soon let go.

/** Bytes of a parameter that is stored, known without reading it: it has a header of four. */
export const sizeOf = (parameter: string): string => `(pg_column_size(${parameter}::json) - 4)`;

/**
 * Bytes of a task are also added to a count under way that has passed the task. The row is locked by then, so the count has passed
 * it or will see what was added. $1 tenant
 */
const addUsage = (bytes: string, task: string): string =>
  `stored_bytes = u.stored_bytes + ${bytes},
    counting_bytes = u.counting_bytes + CASE WHEN ${task} <= u.counting_after THEN ${bytes} ELSE 0 END`;

/** Adds what the turn has stored to the usage of its tenant, $1: `task` returns its id and the bytes. */
export const USAGE_CTE = `usage AS (
  UPDATE tenant_usage u SET ${addUsage('task.open_bytes', 'task.id')} FROM task WHERE u.tenant_id = $1
)`;

/**
 * Adds bytes of many tasks to the usage of their tenants, or takes them off.
 * @param bytes column of `tasks`, which also has tenant_id and id
 * @param tasks table, with a condition if it needs one
 */
export const groupUsageCte = (sign: '+' | '-', bytes: string, tasks: string): string => `usage AS (
  UPDATE tenant_usage u SET stored_bytes = u.stored_bytes ${sign} g.bytes,
    counting_bytes = u.counting_bytes ${sign} coalesce((
      SELECT sum(g.stored[i]) FROM generate_subscripts(g.ids, 1) i WHERE g.ids[i] <= u.counting_after
    ), 0)
  FROM (
    SELECT tenant_id, sum(${bytes}) AS bytes, array_agg(id) AS ids, array_agg(${bytes}) AS stored
    FROM ${tasks} GROUP BY tenant_id
  ) g
  WHERE u.tenant_id = g.tenant_id
)`;

export interface TakenRoomRow {
  taken: boolean;
  /** Whether a count has begun: until it has ended, there is room. */
  counted: boolean;
}

const ALL_BYTES = '(SELECT sum(b) FROM unnest($2::bigint[]) AS b)::bigint';

/** Takes room for what these tasks store, if there is room for all of them: $1 tenant $2 bytes of each $3 most $4 tasks */
export const TAKE_ROOM: Statement = {
  name: 'usage-take-room-4',
  text: `
WITH taken AS (
  UPDATE tenant_usage u SET stored_bytes = u.stored_bytes + ${ALL_BYTES},
    counting_bytes = u.counting_bytes + coalesce((
      SELECT sum(t.bytes) FROM unnest($2::bigint[], $4::uuid[]) AS t(bytes, task) WHERE t.task <= u.counting_after
    ), 0)::bigint
  WHERE tenant_id = $1 AND (NOT is_counted OR stored_bytes + coalesce(catalog_bytes, 0) + ${ALL_BYTES} <= $3::bigint)
  RETURNING 1
)
SELECT EXISTS (SELECT FROM taken) AS taken, EXISTS (SELECT FROM tenant_usage WHERE tenant_id = $1) AS counted`,
};

/** A row for a tenant that was not counted yet: $1 tenant */
export const BEGIN_USAGE: Statement = {
  name: 'usage-begin-2',
  text: `
INSERT INTO tenant_usage (tenant_id, stored_bytes, is_counted) VALUES ($1, 0, false)
ON CONFLICT (tenant_id) DO NOTHING`,
};

interface CountRow {
  counting_after: string | null;
  due: boolean;
}

/**
 * Locks the usage, so that nothing is added while a slice is summed up: $1 tenant $2 age in seconds after which a
 * count is due again
 */
const LOCK_USAGE: Statement = {
  name: 'usage-lock-2',
  text: `
SELECT counting_after, NOT is_counted OR counting_after IS NOT NULL OR catalog_bytes IS NULL
  OR counted_at < now() - $2::int * interval '1 second' AS due
FROM tenant_usage WHERE tenant_id = $1 FOR UPDATE`,
};

/** Sums up the next tasks: $1 tenant $2 the last one of the slice before, NULL = from the start $3 tasks of a slice */
const COUNT_SLICE: Statement = {
  name: 'usage-count-slice',
  text: `
WITH slice AS (
  SELECT id, stored_bytes FROM tasks
  WHERE tenant_id = $1 AND id > coalesce($2::uuid, '00000000-0000-0000-0000-000000000000')
  ORDER BY id LIMIT $3
), summed AS (
  SELECT coalesce(sum(stored_bytes), 0) AS bytes, count(*) AS tasks,
    (SELECT id FROM slice ORDER BY id DESC LIMIT 1) AS last
  FROM slice
), counted AS (
  SELECT tasks < $3 AS is_last, last, tasks + CASE WHEN $2::uuid IS NULL THEN 0 ELSE counting_tasks END AS tasks,
    bytes + CASE WHEN $2::uuid IS NULL THEN 0 ELSE counting_bytes END AS bytes
  FROM summed, tenant_usage WHERE tenant_id = $1
)
UPDATE tenant_usage u SET
  stored_bytes = CASE WHEN c.is_last THEN c.bytes ELSE u.stored_bytes END,
  counted_at = CASE WHEN c.is_last THEN now() ELSE u.counted_at END,
  is_counted = u.is_counted OR c.is_last,
  counting_after = CASE WHEN c.is_last THEN NULL ELSE c.last END,
  counting_bytes = CASE WHEN c.is_last THEN 0 ELSE c.bytes END,
  counting_tasks = CASE WHEN c.is_last THEN 0 ELSE c.tasks END
FROM counted c WHERE u.tenant_id = $1
RETURNING c.is_last, c.tasks`,
};

/** What a version of an agent takes. Only a row of an earlier release lacks it. */
export const VERSION_BYTES = 'coalesce(bytes, octet_length(definition::text))';
export const SECRET_BYTES = 'octet_length(ciphertext) + coalesce(octet_length(origins::text), 0)';
export const SCHEDULE_BYTES = 'octet_length(message::text)';
/** What a value of a context takes, known without reading it. */
const STATE_BYTES = 'pg_column_size(value) + length(key)';

/**
 * Sums up what the tenant keeps besides its tasks. The usage is locked: open transactions with writes wait for it, and
 * then add to the sum. An index has the bytes of versions. $1 tenant
 */
export const COUNT_CATALOG: Statement = {
  name: 'usage-count-catalog-2',
  text: `
UPDATE tenant_usage SET catalog_bytes = coalesce((
  SELECT sum(bytes) FROM agent_versions WHERE tenant_id = $1 AND bytes >= 0
), 0) + coalesce((
  SELECT sum(${VERSION_BYTES}) FROM agent_versions WHERE tenant_id = $1 AND bytes IS NULL
), 0) + coalesce((
  SELECT sum(${SECRET_BYTES}) FROM secrets WHERE tenant_id = $1
), 0) + coalesce((
  SELECT sum(${SCHEDULE_BYTES}) FROM schedules WHERE tenant_id = $1
), 0) + coalesce((
  SELECT sum(${STATE_BYTES}) FROM context_state WHERE tenant_id = $1
), 0)
WHERE tenant_id = $1`,
};

/** Tenants that have been counted longest ago: $1 tenants $2 age of each in seconds */
const DUE: Statement = {
  name: 'usage-due-4',
  text: `
SELECT k.tenant_id FROM unnest($1::uuid[], $2::int[]) AS k(tenant_id, seconds)
LEFT JOIN tenant_usage u ON u.tenant_id = k.tenant_id
WHERE u.counted_at IS NULL OR NOT u.is_counted OR u.counting_after IS NOT NULL OR u.catalog_bytes IS NULL
  OR u.counted_at < now() - k.seconds * interval '1 second'
ORDER BY u.is_counted NULLS FIRST, u.counted_at`,
};

/** The tenants that keep most: $1 how many */
const LARGEST: Statement = {
  text: `
SELECT t.slug AS tenant, (u.stored_bytes + coalesce(u.catalog_bytes, 0))::float8 AS "storedBytes"
FROM tenant_usage u JOIN tenants t ON t.id = u.tenant_id
WHERE u.is_counted ORDER BY 2 DESC, 1 LIMIT $1`,
};

/** What all tenants take at present. Indexes have the runs. */
const LOADS: Statement = {
  text: `
SELECT k.slug AS tenant, coalesce(f.runs, 0)::float8 AS "runsInFlight", coalesce(w.runs, 0)::float8 AS "waitingRuns",
  (u.stored_bytes + coalesce(u.catalog_bytes, 0))::float8 AS "storedBytes"
FROM tenants k
LEFT JOIN (SELECT tenant_id, count(*) AS runs FROM runs WHERE ${IN_FLIGHT} GROUP BY tenant_id) f ON f.tenant_id = k.id
LEFT JOIN (SELECT tenant_id, count(*) AS runs FROM runs WHERE ${WAITING} GROUP BY tenant_id) w ON w.tenant_id = k.id
LEFT JOIN tenant_usage u ON u.tenant_id = k.id AND u.is_counted
ORDER BY k.slug`,
};

/** $1 tenant */
const REPORT: Statement = {
  text: `
SELECT (SELECT (stored_bytes + coalesce(catalog_bytes, 0))::float8 FROM tenant_usage WHERE tenant_id = $1 AND is_counted) AS "storedBytes",
  (SELECT count(*)::int FROM runs WHERE tenant_id = $1 AND state = 'queued') AS "queuedRuns",
  (SELECT count(*)::int FROM runs WHERE tenant_id = $1 AND state = 'running') AS "runningRuns",
  (SELECT count(*)::int FROM runs WHERE tenant_id = $1 AND state = 'suspended') AS "suspendedRuns",
  (SELECT count(*)::int FROM dead_letters WHERE tenant_id = $1) AS "deadLetters",
  (SELECT coalesce(json_agg(json_build_object('day', day, 'inputTokens', input_tokens, 'outputTokens', output_tokens)
    ORDER BY day DESC), '[]') FROM token_usage WHERE tenant_id = $1 AND day > current_date - 31) AS days`,
};

/** What counts against limits of a tenant: $1 tenant */
const LIMIT_USE: Statement = {
  text: `
SELECT (SELECT count(*) FROM runs WHERE tenant_id = $1 AND ${IN_FLIGHT})::float8
    AS "runsAtOnce",
  (SELECT count(*) FROM runs WHERE tenant_id = $1 AND state = 'queued' AND enqueued_at IS NULL)::float8 AS "tasksWaiting",
  (SELECT sum(streams) FROM stream_counts WHERE tenant_id = $1 AND seen_at > clock_timestamp() - interval '15 seconds')::float8
    AS "openStreams",
  (SELECT stored_bytes + coalesce(catalog_bytes, 0) FROM tenant_usage WHERE tenant_id = $1 AND is_counted)::float8 AS "storedBytes",
  (SELECT count(*) FROM agents WHERE tenant_id = $1 AND deleted_at IS NULL)::float8 AS agents,
  (SELECT count(*) FROM secrets WHERE tenant_id = $1)::float8 AS secrets,
  (SELECT count(*) FROM schedules WHERE tenant_id = $1)::float8 AS schedules,
  (SELECT count(*) FROM webhooks WHERE tenant_id = $1)::float8 AS webhooks,
  (SELECT count(*) FROM api_tokens WHERE tenant_id = $1 AND revoked_at IS NULL)::float8 AS tokens,
  (SELECT coalesce(sum(input_tokens + output_tokens), 0) FROM token_usage
   WHERE tenant_id = $1 AND day = (clock_timestamp() AT TIME ZONE 'UTC')::date)::float8 AS "tokensPerDay"`,
};

/** How much of its limits a tenant uses. Null: it is not counted, because the tenant has no such limit. */
export type LimitUse = Record<
  'runsAtOnce' | 'tasksWaiting' | 'agents' | 'secrets' | 'schedules' | 'webhooks' | 'tokens' | 'tokensPerDay',
  number
> &
  Record<'openStreams' | 'storedBytes', number | null>;

/** What a tenant uses. */
export interface TenantUsage {
  /** Null: not counted yet. */
  storedBytes: number | null;
  queuedRuns: number;
  runningRuns: number;
  /** Runs that wait for other tasks. */
  suspendedRuns: number;
  deadLetters: number;
  /** Tokens of models by day (UTC), the last 31 days with some, the latest first. */
  days: { day: string; inputTokens: number; outputTokens: number }[];
}

/** Tasks that are summed up at a time. Meanwhile the turns of their tenant wait: some milliseconds. */
const SLICE_TASKS = 2_000;
/** Longer than any count takes: a count that has ended is not started again. */
const NEVER = 1_000_000_000;

/** Stored bytes of a tenant: the last count, and the turns since then. */
export interface StoredBytes {
  /** Its slug. */
  tenant: string;
  storedBytes: number;
}

/** What a tenant takes at present. */
export interface TenantLoad {
  /** Its slug. */
  tenant: string;
  /** Runs on the queue or at a worker. */
  runsInFlight: number;
  /** Runs that wait for a slot. */
  waitingRuns: number;
  /** Null: not counted yet. */
  storedBytes: number | null;
}

/** The stored bytes of tenants. */
@Injectable()
export class UsageStore {
  constructor(private readonly database: Database) {}

  /**
   * The tenants of these whose count is running, or whose last count is older than their number of seconds. Those that were
   * never counted come first, then those that were counted longest ago.
   */
  async due(tenants: readonly { tenantId: string; seconds: number }[]): Promise<string[]> {
    const values = [tenants.map(({ tenantId }) => tenantId), tenants.map(({ seconds }) => seconds)];
    const rows = await this.database.systemQuery<{ tenant_id: string }>(DUE, values);
    return rows.map(({ tenant_id }) => tenant_id);
  }

  /** The tenants that keep most, the largest first. */
  async largest(limit: number): Promise<StoredBytes[]> {
    return this.database.systemQuery<StoredBytes & QueryResultRow>(LARGEST, [limit]);
  }

  /** All tenants, by slug. */
  async loads(): Promise<TenantLoad[]> {
    return this.database.systemQuery<TenantLoad & QueryResultRow>(LOADS, []);
  }

  async report(tenantId: string): Promise<TenantUsage> {
    const [row] = await this.database.tenantQuery<TenantUsage & QueryResultRow>(tenantId, REPORT, [tenantId]);
    if (!row) throw new Error('a SELECT without FROM has one row');
    return row;
  }

  /** Present use of the tenant, for its limits. */
  async limitUse(tenantId: string): Promise<LimitUse> {
    const [row] = await this.database.tenantQuery<LimitUse & QueryResultRow>(tenantId, LIMIT_USE, [tenantId]);
    if (!row) throw new Error('a SELECT without FROM has one row');
    return row;
  }

  /**
   * Sum up the next tasks of the tenant, if a count is under way or due. If a process dies between two slices, any
   * other process continues the count.
   * @param seconds the age after which a count is due again
   * @returns whether the count has ended
   */
  async count(tenantId: string, seconds: number, sliceTasks = SLICE_TASKS): Promise<boolean> {
    await this.database.tenantQuery(tenantId, BEGIN_USAGE, [tenantId]);
    return countSlice(this.database, tenantId, seconds, sliceTasks);
  }
}

/** As `UsageStore.count`, for a tenant that has a row of usage. */
async function countSlice(
  database: Database,
  tenantId: string,
  seconds = NEVER,
  sliceTasks = SLICE_TASKS,
): Promise<boolean> {
  return database.inTenant(tenantId, (transaction) =>
    countSliceIn(transaction, tenantId, seconds, sliceTasks),
  );
}

/** Counts a slice in a transaction, which holds the lock of the usage until it ends. With the last slice comes the catalog. */
export async function countSliceIn(
  transaction: Pick<Transaction, 'query'>,
  tenantId: string,
  seconds = NEVER,
  sliceTasks = SLICE_TASKS,
): Promise<boolean> {
  const [usage] = await transaction.query<CountRow>(LOCK_USAGE, [tenantId, seconds]);
  if (!usage?.due) return true;
  const values = [tenantId, usage.counting_after, sliceTasks];
  const [counted] = await transaction.query<{ is_last: boolean }>(COUNT_SLICE, values);
  const isLast = counted?.is_last ?? true;
  if (isLast) await transaction.query(COUNT_CATALOG, [tenantId]);
  return isLast;
}
