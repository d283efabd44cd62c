import { TaskState, USAGE } from '@baton/a2a';
import { Injectable } from '@nestjs/common';
import type { QueryResultRow } from 'pg';
import { Database, type Statement } from '../connection/database.js';
import { plainText } from '../connection/transient.js';
import { type Inputs, one, statement } from '../sql/statement.js';
import { keyOfTenant } from '../connection/row-security.js';
import type { ListedTasks } from '../tasks/listed-tasks.js';
import { ALL_STATES, TERMINAL_STATES } from '../tasks/task-row.js';
import { AGENT_TIMES, type AgentTimes, TIMED_AGENTS, type TimedTasks } from './agent-times.js';
import { ownerInReports } from '../tasks/owner-in-reports.js';
import { readableMetadata } from '../tasks/readable-metadata.js';

// Usage of tasks and model calls, by hour, agent, owner and model. A call is added when it ends. An ended task never changes, so it
// is added once: by the roll-up, which reads the ended tasks of a tenant in the order of their end, or by the statement that
// deletes the task before its roll-up. A report adds the tasks behind the roll-up itself.

/** How many days of a tenant are kept. */
export const USAGE_DAYS = 400;
const FIRST_TASK = '00000000-0000-0000-0000-000000000000';

const KEYS = 'hour, agent_id, owner, model';
const SUMS = [
  'tasks',
  'failed',
  'seconds',
  'calls',
  'input_tokens',
  'output_tokens',
  'cached_tokens',
  'cache_write_tokens',
  'agent_micros',
] as const;
const ADD_SUMS = SUMS.map((name) => `${name} = u.${name} + excluded.${name}`).join(', ');

/**
 * SQL of a number of tokens that an agent reports. It can write anything there. A number of more than 12 digits counts as 0: the sum
 * of an hour must fit into a bigint, or else the roll-up and the deletion of tasks fail, for all tenants.
 */
const reported = (name: string): string =>
  `CASE WHEN x.usage ->> 'metered' IS DISTINCT FROM 'true' AND x.usage ->> '${name}' ~ '^[0-9]{1,12}$'
      THEN (x.usage ->> '${name}')::bigint ELSE 0 END`;

/**
 * Query with the keys and sums of each task of `from`, a relation with `agent_id`, `owner`, `state`, `status_at`, `created_at`
 * and `metadata`. The tokens of metered tasks are those of their calls, which are there already.
 */
const taskSums = (from: string): string => `
SELECT ${from}.tenant_id, date_trunc('hour', ${from}.status_at, 'UTC') AS hour, ${from}.agent_id, ${ownerInReports(`${from}.owner`)} AS owner,
  left(coalesce(x.usage ->> 'model', ''), 200) AS model, 1 AS tasks,
  (${from}.state = ${TaskState.TASK_STATE_FAILED})::int AS failed,
  extract(epoch FROM greatest(${from}.status_at - ${from}.created_at, interval '0'))::float8 AS seconds, 0 AS calls,
  ${reported('inputTokens')} AS input_tokens, ${reported('outputTokens')} AS output_tokens,
  least(${reported('cachedInputTokens')}, ${reported('inputTokens')}) AS cached_tokens, 0 AS cache_write_tokens,
  0 AS agent_micros
FROM ${from}, LATERAL (
  SELECT ${readableMetadata(`${from}.metadata`, `-> '${USAGE}'`)} AS usage
) x`;

/** Adds the sums of these tasks. Sorted, so that no two transactions deadlock. */
const addTasks = (from: string): string => `
INSERT INTO usage_hours AS u (tenant_id, ${KEYS}, ${SUMS.join(', ')})
SELECT tenant_id, ${KEYS}, ${SUMS.map((name) => `sum(${name})`).join(', ')}
FROM (${taskSums(from)}) s GROUP BY tenant_id, ${KEYS} ORDER BY tenant_id, ${KEYS}
ON CONFLICT (tenant_id, ${KEYS}) DO UPDATE SET ${ADD_SUMS}`;

/** Usage of a model call. */
interface ModelCall {
  tenantId: string;
  runId: string;
  model: string;
  inputTokens: number;
  outputTokens: number;
  cachedInputTokens: number;
  cacheWriteTokens: number;
}

const CALL = {
  tenant_id: ['uuid', ({ tenantId }) => tenantId],
  run_id: ['uuid', ({ runId }) => runId],
  // The author of an agent chooses the name.
  model: ['text', ({ model }) => plainText(model)],
  input_tokens: ['bigint', ({ inputTokens }) => inputTokens],
  output_tokens: ['bigint', ({ outputTokens }) => outputTokens],
  cached_tokens: ['bigint', ({ cachedInputTokens }) => cachedInputTokens],
  cache_write_tokens: ['bigint', ({ cacheWriteTokens }) => cacheWriteTokens],
} satisfies Inputs<ModelCall>;

export const RECORD_CALL = statement(
  'usage-record-call-3',
  { call: one(CALL) },
  ({ call }) => `
INSERT INTO usage_hours AS u (tenant_id, ${KEYS}, calls, input_tokens, output_tokens, cached_tokens, cache_write_tokens)
SELECT ${call.tenant_id}, date_trunc('hour', clock_timestamp(), 'UTC'), coalesce(t.agent_id, ''), ${ownerInReports('t.owner')}, left(${call.model}, 200), 1,
  ${call.input_tokens}, ${call.output_tokens}, least(${call.cached_tokens}, ${call.input_tokens}),
  least(${call.cache_write_tokens}, greatest(${call.input_tokens} - ${call.cached_tokens}, 0))
FROM (SELECT) AS call
LEFT JOIN runs r ON r.tenant_id = ${keyOfTenant(call.tenant_id)} AND r.id = ${call.run_id}
LEFT JOIN tasks t ON t.tenant_id = ${keyOfTenant(call.tenant_id)} AND t.id = r.task_id
ON CONFLICT (tenant_id, ${KEYS}) DO UPDATE SET ${ADD_SUMS}`,
);

/** What a task costs besides model calls, so far. */
export interface AgentCost {
  tenantId: string;
  taskId: string;
  micros: number;
}

const COST = {
  tenant_id: ['uuid', ({ tenantId }) => tenantId],
  task_id: ['uuid', ({ taskId }) => taskId],
  micros: ['bigint', ({ micros }) => micros],
} satisfies Inputs<AgentCost>;

/**
 * Adds the increase of the cost since the last count. A repeated statement adds nothing. @param column of the task with the counted
 * cost
 */
const recordCost = (column: 'price_micros' | 'reported_micros') =>
  statement(
    `usage-record-${column.replace('_', '-')}`,
    { cost: one(COST) },
    ({ cost }) => `
WITH held AS (
  SELECT id, agent_id, owner, coalesce(${column}, 0) AS before FROM tasks
  WHERE tenant_id = ${keyOfTenant(cost.tenant_id)} AND id = ${cost.task_id} FOR UPDATE
), noted AS (
  UPDATE tasks t SET ${column} = ${cost.micros} FROM held
  WHERE t.tenant_id = ${keyOfTenant(cost.tenant_id)} AND t.id = held.id AND held.before < ${cost.micros}
  RETURNING held.agent_id, held.owner, ${cost.micros} - held.before AS micros
)
INSERT INTO usage_hours AS u (tenant_id, ${KEYS}, agent_micros)
SELECT ${cost.tenant_id}, date_trunc('hour', clock_timestamp(), 'UTC'), agent_id, ${ownerInReports('owner')}, '', micros FROM noted
ON CONFLICT (tenant_id, ${KEYS}) DO UPDATE SET ${ADD_SUMS}`,
  );

/** Statements that count what a task costs: its price, and what its agent reports. */
export const RECORD_COST = { task: recordCost('price_micros'), reported: recordCost('reported_micros') };

/** A transaction that rolls up or deletes ended tasks holds this lock until it ends, so that each task is added once. */
export const LOCK_ROLLUP: Statement = {
  name: 'usage-lock-rollup',
  text: `SELECT pg_advisory_xact_lock(hashtext('baton usage'))`,
};

/** CTEs that add the deleted tasks `gone` that were not rolled up. */
export const GONE_USAGE_CTES = `unrolled AS (
  SELECT g.* FROM gone g LEFT JOIN usage_rollups w ON w.tenant_id = g.tenant_id
  WHERE w.tenant_id IS NULL OR (g.status_at, g.id) > (w.ended_at, w.task_id)
), counted AS (${addTasks('unrolled')}
)`;

/** $1 tenant */
const CURSOR: Statement = {
  name: 'usage-cursor',
  text: `SELECT ended_at::text AS "endedAt", task_id AS "taskId" FROM usage_rollups WHERE tenant_id = $1`,
};

/** Adds the next ended tasks: $1 tenant $2, $3 the last one before them $4 how long ago they have ended, in ms $5 limit */
const ROLL_UP: Statement = {
  text: `
WITH slice AS MATERIALIZED (
  SELECT t.* FROM unnest(ARRAY[${TERMINAL_STATES}]::smallint[]) AS s(state), LATERAL (
    SELECT status_at, id FROM tasks
    WHERE tenant_id = $1 AND state = s.state AND (status_at, id) > ($2::timestamptz, $3::uuid)
      AND status_at < clock_timestamp() - $4::int * interval '1 millisecond'
    ORDER BY status_at, id LIMIT $5
  ) t
  ORDER BY t.status_at, t.id LIMIT $5
), ended AS (
  SELECT t.* FROM slice JOIN tasks t ON t.tenant_id = $1 AND t.id = slice.id
), added AS (${addTasks('ended')}
), moved AS (
  INSERT INTO usage_rollups (tenant_id, ended_at, task_id)
  SELECT $1, status_at, id FROM slice ORDER BY status_at DESC, id DESC LIMIT 1
  ON CONFLICT (tenant_id) DO UPDATE SET ended_at = excluded.ended_at, task_id = excluded.task_id
)
SELECT count(*)::int AS tasks FROM slice`,
};

/** $1 tenant */
const FORGET: Statement = {
  name: 'usage-forget-hours-4',
  text: `
WITH charges AS (
  DELETE FROM spending_charges WHERE tenant_id = $1 AND updated_at < now() - interval '${USAGE_DAYS} days'
), allowances AS (
  DELETE FROM spending_allowances WHERE tenant_id = $1 AND updated_at < now() - interval '${USAGE_DAYS} days'
), counts AS (
  DELETE FROM spending_counts WHERE tenant_id = $1 AND updated_at < now() - interval '${USAGE_DAYS} days'
)
DELETE FROM usage_hours WHERE tenant_id = $1 AND hour < now() - interval '${USAGE_DAYS} days'`,
};

/** Tenants with ended tasks that are not rolled up: $1 how long ago they have ended, in ms */
const DUE: Statement = {
  text: `
SELECT k.id FROM tenants k LEFT JOIN usage_rollups w ON w.tenant_id = k.id
WHERE EXISTS (
  SELECT FROM unnest(ARRAY[${TERMINAL_STATES}]::smallint[]) AS s(state), LATERAL (
    SELECT FROM tasks t WHERE t.tenant_id = k.id AND t.state = s.state
      AND (t.status_at, t.id) > (coalesce(w.ended_at, '-infinity'), coalesce(w.task_id, '${FIRST_TASK}'))
      AND t.status_at < clock_timestamp() - $1::int * interval '1 millisecond'
    LIMIT 1
  ) t
)`,
};

/** Groupings of a report, with their SQL. A day is a day of UTC. */
const USAGE_KEYS = {
  day: `(hour AT TIME ZONE 'UTC')::date::text`,
  agent: 'agent_id',
  owner: 'owner',
  token: `CASE WHEN owner LIKE 'token:%' THEN substr(owner, 7) ELSE '' END`,
  model: 'model',
};
export type UsageKey = keyof typeof USAGE_KEYS;
export const USAGE_KEY_NAMES = Object.keys(USAGE_KEYS) as readonly UsageKey[];

/** Tasks behind the roll-up that a report adds. */
const MAX_LIVE_TASKS = 100_000;
/** Rows of a report. */
const MAX_ROWS = 10_000;

/** Whose usage, of which agents, and when. */
export type UsageFilter = Pick<ListedTasks, 'tenantId' | 'agentId' | 'agentIds' | 'own'> & {
  /** The beginning of an hour. */
  since: Date;
  /** Before this time. */
  until: Date;
};

/** The usage of one key with one model. */
export interface UsageSums {
  /** The key of the group: a day (UTC), or an id. */
  key: string;
  /** `provider/model`; empty = none. */
  model: string;
  tasks: number;
  failed: number;
  /** From the creation of each task to its last status. */
  seconds: number;
  /** Model calls that Baton has made. */
  calls: number;
  inputTokens: number;
  outputTokens: number;
  /** Input tokens that came from the provider's cache. */
  cachedTokens: number;
  /** Input tokens that the provider has written into its cache. */
  cacheWriteTokens: number;
  /** What tasks cost besides model calls, in millionths of the currency: prices of agents, and what agents report. */
  agentMicros: number;
}

export interface UsageReport {
  sums: UsageSums[];
  /** False: the roll-up is far behind, and some tasks are not in the sums; or there are more rows. */
  isWhole: boolean;
}

const FILTER = {
  tenant_id: ['uuid', ({ tenantId }) => tenantId],
  since: ['timestamptz', ({ since }) => since],
  until: ['timestamptz', ({ until }) => until],
  /** Maximum number of tasks that are in no hour. */
  most: ['int', ({ most }) => most],
  agent_id: ['text', ({ agentId }) => agentId],
  agent_ids: ['text[]', ({ agentIds }) => agentIds],
  owner: ['text', ({ own }) => own?.owner],
  /** Tasks without an owner count as well. */
  unowned: ['boolean', ({ own }) => own?.unowned],
} satisfies Inputs<UsageFilter & { most: number }>;

/** Sums up the hours, and the tasks that are in none. */
const reportStatement = (by: UsageKey) =>
  statement(
    undefined,
    { of: one(FILTER) },
    ({ of }) => `
WITH open AS MATERIALIZED (
  SELECT t.* FROM unnest(ARRAY[${ALL_STATES.join(', ')}]::smallint[]) AS s(state)
  LEFT JOIN usage_rollups w ON w.tenant_id = ${of.tenant_id} AND s.state IN (${TERMINAL_STATES}), LATERAL (
    SELECT * FROM tasks t WHERE t.tenant_id = ${of.tenant_id} AND t.state = s.state
      AND (t.status_at, t.id) > (coalesce(w.ended_at, '-infinity'), coalesce(w.task_id, '${FIRST_TASK}'))
      AND t.status_at >= ${of.since} AND t.status_at < ${of.until}
    LIMIT ${of.most} + 1
  ) t
  LIMIT ${of.most} + 1
), found AS (
  SELECT ${KEYS}, ${SUMS.join(', ')} FROM (${taskSums('open')}) s
  UNION ALL
  SELECT ${KEYS}, ${SUMS.join(', ')} FROM usage_hours WHERE tenant_id = ${of.tenant_id} AND hour >= ${of.since} AND hour < ${of.until}
), grouped AS (
  SELECT ${USAGE_KEYS[by]} AS key, model, sum(tasks)::float8 AS tasks, sum(failed)::float8 AS failed,
    sum(seconds)::float8 AS seconds, sum(calls)::float8 AS calls, sum(input_tokens)::float8 AS "inputTokens",
    sum(output_tokens)::float8 AS "outputTokens", sum(cached_tokens)::float8 AS "cachedTokens",
    sum(cache_write_tokens)::float8 AS "cacheWriteTokens", sum(agent_micros)::float8 AS "agentMicros"
  FROM found
  WHERE (${of.agent_id} IS NULL OR agent_id = ${of.agent_id}) AND (${of.agent_ids} IS NULL OR agent_id = ANY(${of.agent_ids}))
    AND (${of.owner} IS NULL OR owner = ${of.owner} OR ${of.unowned} AND owner = '')
  GROUP BY 1, 2 ORDER BY 1 DESC, 2 LIMIT ${MAX_ROWS + 1}
)
SELECT (SELECT count(*)::int FROM open) AS live, g.* FROM (SELECT) one LEFT JOIN grouped g ON true`,
  );

/** Sums up the hours of all tenants: $1 since $2 until */
const TENANT_SUMS: Statement = {
  text: `
SELECT k.slug AS key, h.* FROM tenants k, LATERAL (
  SELECT model, sum(tasks)::float8 AS tasks, sum(failed)::float8 AS failed,
    sum(seconds)::float8 AS seconds, sum(calls)::float8 AS calls, sum(input_tokens)::float8 AS "inputTokens",
    sum(output_tokens)::float8 AS "outputTokens", sum(cached_tokens)::float8 AS "cachedTokens",
    sum(cache_write_tokens)::float8 AS "cacheWriteTokens", sum(agent_micros)::float8 AS "agentMicros"
  FROM usage_hours WHERE tenant_id = k.id AND hour >= $1::timestamptz AND hour < $2::timestamptz GROUP BY model
) h`,
};

/** The usage of tenants: exact for any number of tasks. */
@Injectable()
export class UsageHoursStore {
  constructor(private readonly database: Database) {}

  /** @param most tasks behind the roll-up that are added */
  async report(by: UsageKey, filter: UsageFilter, most = MAX_LIVE_TASKS): Promise<UsageReport> {
    const report = reportStatement(by);
    const values = report.values({ of: { ...filter, most } });
    // One row without sums means that there are none.
    type Row = { live: number; key: string | null } & Omit<UsageSums, 'key'> & QueryResultRow;
    const rows = await this.database.lists.tenantQuery<Row>(filter.tenantId, report, values);
    const [first] = rows;
    const isWhole = (first?.live ?? 0) <= most && rows.length <= MAX_ROWS;
    const sums = rows
      .slice(0, MAX_ROWS)
      .flatMap(({ live: _, key, ...row }) => (key === null ? [] : [{ key, ...row }]));
    return { sums, isWhole };
  }

  /** The usage of all tenants by their slugs, without the tasks that are in no hour yet. A tenant without usage is left out. */
  async ofTenants({ since, until }: { since: Date; until: Date }): Promise<UsageSums[]> {
    return this.database.systemQuery<UsageSums & QueryResultRow>(TENANT_SUMS, [since, until]);
  }

  /** How long the newest ended tasks of agents have taken, of the first `TIMED_AGENTS`. An agent without ended tasks is left out. */
  async agentTimes({ agentIds, ...of }: TimedTasks): Promise<AgentTimes[]> {
    const values = AGENT_TIMES.values({ of: { ...of, agentIds: agentIds.slice(0, TIMED_AGENTS) } });
    return this.database.lists.tenantQuery<AgentTimes & QueryResultRow>(of.tenantId, AGENT_TIMES, values);
  }

  /** The tenants with tasks that ended longer than `lagMs` ago and are not rolled up. */
  async due(lagMs: number): Promise<string[]> {
    const rows = await this.database.systemQuery<{ id: string }>(DUE, [lagMs]);
    return rows.map(({ id }) => id);
  }

  /**
   * Add the next ended tasks of a tenant, and forget hours that are long over. A process that dies in between has added none.
   * @param lagMs how long ago they must have ended: a task whose end is stored later than that is never found
   * @returns how many
   */
  async rollUp(tenantId: string, lagMs: number, limit: number): Promise<number> {
    return this.database.inTenant(tenantId, async (transaction) => {
      await transaction.query(LOCK_ROLLUP, []);
      const [cursor] = await transaction.query<{ endedAt: string; taskId: string }>(CURSOR, [tenantId]);
      const { endedAt = '-infinity', taskId = FIRST_TASK } = cursor ?? {};
      const [row] = await transaction.query<{ tasks: number }>(ROLL_UP, [
        tenantId,
        endedAt,
        taskId,
        lagMs,
        limit,
      ]);
      await transaction.query(FORGET, [tenantId]);
      return row?.tasks ?? 0;
    });
  }
}
