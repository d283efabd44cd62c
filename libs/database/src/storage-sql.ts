import type { Statement } from './database.js';

// What a task stores are the bytes of its messages and events as JSON. Those of a turn that is running are
// `open_bytes`; they are added to `stored_bytes`, and to the tenant's usage, in the statement that ends the turn.
// Only tenants with a limit have a row of usage. It is the last row that a transaction locks, and soon let go.

/** Bytes of a parameter that is stored, known without reading it: it has a header of four. */
export const sizeOf = (parameter: string): string => `(pg_column_size(${parameter}::json) - 4)`;

/** Adds what the turn has stored to the usage of its tenant, $1: `task` returns the bytes. */
export const USAGE_CTE = `usage AS (
  UPDATE tenant_usage u SET stored_bytes = u.stored_bytes + task.open_bytes FROM task WHERE u.tenant_id = $1
)`;

export interface RoomRow {
  taken: boolean;
  /** Whether anybody has counted what the tenant has stored. */
  counted: boolean;
}

/** Takes room for what is stored, if there is any: $1 tenant $2 bytes $3 most */
export const TAKE_ROOM: Statement = {
  name: 'usage-take-room',
  text: `
WITH taken AS (
  UPDATE tenant_usage SET stored_bytes = stored_bytes + $2::bigint
  WHERE tenant_id = $1 AND stored_bytes + $2::bigint <= $3::bigint
  RETURNING 1
)
SELECT EXISTS (SELECT FROM taken) AS taken, EXISTS (SELECT FROM tenant_usage WHERE tenant_id = $1) AS counted`,
};

const SUM = `(SELECT coalesce(sum(stored_bytes), 0) FROM tasks WHERE tenant_id = $1)`;

/** $1 tenant. The tasks are summed up only if nobody has done so. */
export const BEGIN_USAGE: Statement = {
  name: 'usage-begin',
  text: `
INSERT INTO tenant_usage (tenant_id, stored_bytes)
SELECT $1, ${SUM} WHERE NOT EXISTS (SELECT FROM tenant_usage WHERE tenant_id = $1)
ON CONFLICT (tenant_id) DO NOTHING`,
};

/**
 * Puts the usage right: $1 tenant. Sum and usage are read in one snapshot, in which both have seen the same turns;
 * what is added meanwhile stays added.
 */
export const RECOUNT: Statement = {
  name: 'usage-recount',
  text: `
WITH seen AS (
  SELECT ${SUM} - stored_bytes AS missing FROM tenant_usage WHERE tenant_id = $1
)
UPDATE tenant_usage u SET stored_bytes = u.stored_bytes + seen.missing, counted_at = now()
FROM seen WHERE u.tenant_id = $1`,
};

/** Tenants that have been counted longest ago: $1 tenants with a limit $2 age in seconds */
export const DUE: Statement = {
  name: 'usage-due',
  text: `
SELECT k.tenant_id FROM unnest($1::uuid[]) AS k(tenant_id)
LEFT JOIN tenant_usage u ON u.tenant_id = k.tenant_id
WHERE u.counted_at IS NULL OR u.counted_at < now() - $2::int * interval '1 second'
ORDER BY u.counted_at NULLS FIRST`,
};

/** $1 tenants with a limit: the others have nothing to be counted for. */
export const DROP_USAGE: Statement = {
  name: 'usage-drop',
  text: `
DELETE FROM tenant_usage WHERE tenant_id IN (
  SELECT tenant_id FROM tenant_usage WHERE tenant_id <> ALL($1::uuid[]) FOR UPDATE SKIP LOCKED
)`,
};
