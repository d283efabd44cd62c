/**
 * SQL: the entries of a task's journal as rows `e` that Postgres can query. It refuses a JSON value with U+0000 or half of a surrogate pair
 * in any text, even in one that the query does not read. $1 tenant $2 task
 */
export const READABLE_ENTRIES = String.raw`(
  SELECT position, run_id, attempt,
    regexp_replace(value::text, '\\u(0000|d[89a-f][0-9a-f]{2})', '\\ufffd', 'gi')::json AS value
  FROM turn_journal WHERE tenant_id = $1 AND task_id = $2
) e`;
