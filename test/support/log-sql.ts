/**
 * SQL of the events of all logs, one row each, however they are stored: tenant_id, task_id, sequence, attempt, payload,
 * created_at. Of a first event that its message stands for, the payload has no more than its status.
 */
export const LOG = `(
  SELECT m.tenant_id, m.task_id, 1 AS sequence, 0 AS attempt, m.accepted_at AS created_at,
    '{"task":{"status":{"state":"TASK_STATE_SUBMITTED"}}}'::json AS payload
  FROM task_messages m WHERE m.accepted_at IS NOT NULL
  UNION ALL
  SELECT r.tenant_id, r.task_id, coalesce(r.first_sequence, r.sequence) + n::int - 1, r.attempt, r.created_at, e.payload
  FROM task_events r, json_array_elements(
    CASE WHEN r.first_sequence IS NULL THEN json_build_array(r.payload) ELSE r.payload END
  ) WITH ORDINALITY AS e(payload, n)
)`;
