import { one, statement, type Inputs } from '../sql/statement.js';
import { TERMINAL_STATES } from '../tasks/task-row.js';

/** Ended tasks of each agent whose durations are compared: the newest. */
export const TIMED_TASKS = 100;
/** Agents that one call is about. */
export const TIMED_AGENTS = 200;

/** How long the newest ended tasks of an agent have taken. */
export interface AgentTimes {
  agentId: string;
  /** 95 of 100 tasks have taken no longer, from creation to end. */
  p95Seconds: number;
  lastEndedAt: Date;
}

/** Whose tasks, and when they have ended. */
export interface TimedTasks {
  tenantId: string;
  agentIds: readonly string[];
  since: Date;
  /** Before this time. */
  until: Date;
}

const TIMED = {
  tenant_id: ['uuid', ({ tenantId }) => tenantId],
  agent_ids: ['text[]', ({ agentIds }) => agentIds],
  since: ['timestamptz', ({ since }) => since],
  until: ['timestamptz', ({ until }) => until],
} satisfies Inputs<TimedTasks>;

/**
 * Reads at most `TIMED_TASKS` tasks of each agent and state, from the index of lists: it serves a query that repeats its condition
 * (`state > 2`).
 */
export const AGENT_TIMES = statement(
  'usage-agent-times',
  { of: one(TIMED) },
  ({ of }) => `
SELECT a.id AS "agentId", max(newest.status_at) AS "lastEndedAt",
  percentile_cont(0.95) WITHIN GROUP (
    ORDER BY extract(epoch FROM greatest(newest.status_at - newest.created_at, interval '0'))::float8
  ) AS "p95Seconds"
FROM unnest(${of.agent_ids}) AS a(id), LATERAL (
  SELECT t.status_at, t.created_at FROM unnest(ARRAY[${TERMINAL_STATES}]::smallint[]) AS s(state), LATERAL (
    SELECT status_at, created_at FROM tasks
    WHERE tenant_id = ${of.tenant_id} AND agent_id = a.id AND state = s.state AND state > 2
      AND status_at >= ${of.since} AND status_at < ${of.until}
    ORDER BY status_at DESC, id DESC LIMIT ${TIMED_TASKS}
  ) t
  ORDER BY t.status_at DESC LIMIT ${TIMED_TASKS}
) newest
GROUP BY a.id`,
);
