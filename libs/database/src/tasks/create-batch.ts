import type { Values } from '../connection/database.js';
import { arrayText } from '../connection/pg-pipeline.js';
import { type Inputs, list, one, statement } from '../sql/statement.js';
import { groupQuotaCte } from '../dispatch/quota.js';
import { leaseExpiry } from '../dispatch/lease-expiry.js';
import { FIRST_EVENT, insertEvents } from '../log/insert-events.js';
import { KEY, reuseKey } from './message-key.js';
import { NEW_TASK, type NewTaskRow, webhooksOf } from './new-task-row.js';
import type { MessageKey, NewTask } from './task-records.js';
import { RETRY, retryColumns, retryPolicy } from './retry-policy.js';

/** What the tasks of one statement have in common. */
interface Common {
  tenantId: string;
  quota: NewTask['quota'];
  retry: NewTask['retry'];
}

const COMMON = {
  tenant_id: ['uuid', ({ tenantId }) => tenantId],
  max_waiting: ['int', ({ quota }) => quota?.maxWaiting],
  retry: ['float8[]', ({ retry }) => retryPolicy(retry)],
} satisfies Inputs<Common>;

/** An input of the key of a message, for a task that may have none. */
const ofKey =
  <Value>(value: (key: MessageKey) => Value) =>
  ({ input }: NewTaskRow): Value | undefined =>
    input.key && value(input.key);

const ITEM = {
  message: ['json', ({ message }) => message],
  ...NEW_TASK,
  status: ['text', ({ status }) => status],
  metadata: ['text', ({ metadata }) => metadata],
  /** NULL = the message stands for it. */
  event: ['text', ({ event }) => event],
  /** The request without its message. */
  request: ['text', ({ details }) => details],
  extensions: ['text', ({ input }) => arrayText(input.extensions)],
  key: ['bytea', ofKey(KEY.hash[1])],
  content: ['bytea', ofKey(KEY.content[1])],
  hours: ['int', ofKey(KEY.hours[1])],
  gone: ['uuid', ofKey(KEY.gone_task_id[1])],
  earlier_key: ['bytea', ofKey(KEY.earlier_hash[1])],
  max_in_flight: ['int', ({ input }) => input.quota?.maxInFlight],
  reserve_up_to: ['int', ({ input }) => input.quota?.reserveUpTo ?? 1],
  /** The worker for which the run is claimed; NULL = none. */
  worker_id: ['text', (row) => claimOf(row)?.workerId],
  lease_ms: ['int', (row) => claimOf(row)?.leaseMs],
} satisfies Inputs<NewTaskRow>;

/**
 * Tasks of one tenant without an id of the caller's, each judged on its own, in their order. No two have the same key. Concurrent
 * messages with the same key wait in `known` for each other; keys are locked in their order, so that no two batches deadlock. The
 * tasks of a batch differ by a microsecond, because the oldest one goes first.
 *
 * A run that need not wait is claimed at once, as its first attempt, if a worker is named for it
 * (docs/inside/adr/0050-acceptance-claims-runs.md).
 */
export const CREATE = statement(
  'task-create-group-2',
  { common: one(COMMON), items: list(ITEM) },
  ({ common, items }) => `
WITH item AS MATERIALIZED (
  SELECT * FROM ${items.rows('i', 'position')}
), looked_up AS MATERIALIZED (
  SELECT i.*, before.task_id AS before_task, before.sequence AS before_sequence, before.content AS before_content,
    before.task_id IS NOT NULL OR coalesce((
      SELECT true FROM message_keys k
      WHERE k.tenant_id = ${common.tenant_id} AND k.key = i.key AND k.expires_at > now() AND k.task_id IS DISTINCT FROM i.gone LIMIT 1
    ), false) AS is_known
  FROM item i LEFT JOIN LATERAL (
    SELECT task_id, sequence, content FROM message_keys
    WHERE tenant_id = ${common.tenant_id} AND key = i.earlier_key AND expires_at > now() AND task_id IS DISTINCT FROM i.gone LIMIT 1
  ) before ON true
), ${groupQuotaCte('looked_up', { ...common, max_in_flight: items.arrays.max_in_flight, reserve_up_to: items.arrays.reserve_up_to })}, known AS (
  INSERT INTO message_keys AS k (tenant_id, key, content, task_id, sequence, expires_at)
  SELECT ${common.tenant_id}, key, coalesce(before_content, content), coalesce(before_task, task_id), coalesce(before_sequence, 1),
    now() + hours * interval '1 hour'
  FROM placed WHERE key IS NOT NULL AND NOT refused ORDER BY key
  ON CONFLICT (tenant_id, key) DO UPDATE SET ${reuseKey('(SELECT i.gone FROM item i WHERE i.key = EXCLUDED.key)')}
  RETURNING k.key, k.task_id, k.content
), judged AS MATERIALIZED (
  SELECT p.*, CASE WHEN NOT p.refused THEN coalesce(k.task_id, p.task_id) END AS named, k.content AS known_content,
    now() + (p.position - 1) * interval '1 microsecond' AS created_at, p.dispatched AND p.worker_id IS NOT NULL AS claimed
  FROM placed p LEFT JOIN known k ON k.key = p.key
), created AS MATERIALIZED (
  SELECT * FROM judged WHERE named = task_id
), task AS (
  INSERT INTO tasks (tenant_id, id, agent_id, context_id, context_key, state, status, status_at, metadata,
    last_sequence, artifacts_sequence, active_run_id, attempt, stored_bytes, owner, push_configs, created_at)
  SELECT ${common.tenant_id}, task_id, agent_id, context_id, md5(context_id)::uuid, state, status::json, status_at, metadata::json,
    1, 1, run_id, claimed::int, octet_length(message::text) + coalesce(octet_length(event), 0) + coalesce(octet_length(request), 0), owner,
    ${webhooksOf(common.tenant_id, 'task_id', 'agent_id')}, created_at
  FROM created
), message AS (
  INSERT INTO task_messages (tenant_id, task_id, sequence, message, accepted_at, request)
  SELECT ${common.tenant_id}, task_id, 1, message, CASE WHEN event IS NULL THEN status_at END, request::json FROM created
), event AS (
  ${insertEvents(
    {
      ...FIRST_EVENT,
      tenant_id: common.tenant_id,
      task_id: 'task_id',
      payload: 'event::json',
      bytes: 'octet_length(event)',
    },
    'FROM created WHERE event IS NOT NULL',
  )}
), run AS (
  INSERT INTO runs (tenant_id, id, task_id, state, attempt, worker_id, lease_expires_at, start_sequence, extensions, traceparent,
    enqueued_at, created_at, agent_label, agent_version, ${RETRY})
  SELECT ${common.tenant_id}, run_id, task_id, CASE WHEN claimed THEN 'running' ELSE 'queued' END, claimed::int, CASE WHEN claimed THEN worker_id END,
    CASE WHEN claimed THEN ${leaseExpiry('lease_ms')} END, 1, extensions::text[], traceparent,
    CASE WHEN dispatched THEN now() END, created_at, agent_label, agent_version, ${retryColumns(common.retry)} FROM created
)
SELECT named AS task_id, known_content AS content, dispatched, claimed, may_use_reserved FROM judged ORDER BY position`,
);

/** The values of `CREATE`. @param rows of one tenant, with one retry policy, and one quota but for the runs in flight */
export function createValues(tenantId: string, rows: readonly NewTaskRow[]): Values {
  const { quota, retry } = rows[0]?.input ?? {};
  return CREATE.values({ common: { tenantId, quota, retry }, items: rows });
}

/** Maximum size of a task that shares its transaction with tasks of other tenants. They would wait for a larger one. */
export const MAX_SHARED_BYTES = 32 * 1024;

/** The claim that a task asks for. Its worker gets the task whole, so a larger one goes through the queue, as does a child. */
const claimOf = ({ bytes, input }: NewTaskRow): NewTask['claimFor'] =>
  bytes <= MAX_SHARED_BYTES && !input.child ? input.claimFor : undefined;
