import { Injectable } from '@nestjs/common';
import type { QueryResultRow } from 'pg';
import { Database, type Statement } from '../connection/database.js';
import { IN_FLIGHT, WAITING } from '../dispatch/run-conditions.js';
import { SLICE_TASKS, countSlice, BEGIN_USAGE } from './count-usage.js';

// What a task stores are the bytes of its messages, events and journal as JSON. Those of a turn that is running are
// `open_bytes`; they are added to `stored_bytes`, and to the tenant's usage, in the statement that ends the turn.
// Besides its tasks a tenant keeps a catalog: versions of agents, secrets and schedules (`catalog_bytes`, tenant-room.ts). The values that agents
// keep for contexts are counted with it, by the count alone.
// Every tenant has a row of usage, made by the first count. Without a limit, what a new task brings is added by the next count
// alone (every hour), so that acceptance locks nothing. A transaction locks it last, and therefore briefly.

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
