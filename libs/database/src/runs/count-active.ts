import type { Database, Statement } from '../connection/database.js';
import { IN_FLIGHT, WAITING } from '../dispatch/run-conditions.js';
import type { ActiveRunCounts } from './active-run-counts.js';

/** A row of one tenant has no `oldest`, and the row of all tenants no `tenant`. */
interface ActiveRow {
  /** Slug. */
  tenant: string | null;
  state: string;
  runs: number;
  /** Age of the oldest run in seconds. Null: it is not counted for suspended runs. */
  oldest: number | null;
}

/** $1 how many tenants are named: those with the most runs. It has no name: it is planned for the tables as they are. */
const COUNT_ACTIVE: Statement = {
  text: `
WITH active AS MATERIALIZED (
  SELECT tenant_id, 'waiting' AS state, count(*)::int AS runs, min(created_at) AS oldest
  FROM runs WHERE ${WAITING} GROUP BY tenant_id
  UNION ALL
  SELECT tenant_id, state, count(*)::int, min(created_at)
  FROM runs WHERE ${IN_FLIGHT} GROUP BY tenant_id, state
  UNION ALL
  SELECT tenant_id, state, count(*)::int, NULL FROM runs WHERE state = 'suspended' GROUP BY tenant_id, state
)
SELECT NULL AS tenant, state, sum(runs)::int AS runs,
  greatest(0, extract(epoch FROM clock_timestamp() - min(oldest)))::float8 AS oldest
FROM active GROUP BY state
UNION ALL
SELECT t.slug, a.state, a.runs, NULL
FROM (SELECT tenant_id FROM active GROUP BY tenant_id ORDER BY sum(runs) DESC, tenant_id LIMIT $1) most
JOIN active a ON a.tenant_id = most.tenant_id
JOIN tenants t ON t.id = a.tenant_id`,
};

/**
 * The runs that have not ended, for metrics. Finished ones are not counted: there is no end to them.
 * @param maxTenants how many tenants are named: those with the most runs
 */
export async function countActive(database: Database, maxTenants: number): Promise<ActiveRunCounts> {
  const rows = await database.systemQuery<ActiveRow>(COUNT_ACTIVE, [maxTenants]);
  const none = { runs: 0, oldestSeconds: 0 };
  const counts: ActiveRunCounts = {
    states: { waiting: none, queued: none, running: none, suspended: none },
    tenants: [],
  };
  for (const { tenant, state, runs, oldest } of rows) {
    if (tenant !== null) counts.tenants.push({ tenant, state, runs });
    else counts.states[state] = { runs, oldestSeconds: oldest ?? 0 };
  }
  return counts;
}
