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
