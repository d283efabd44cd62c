import { hasState } from '../dispatch/run-conditions.js';
import { keyOfTenant } from '../connection/row-security.js';
import { TaskState } from '@baton/a2a';
import type { Statement } from '../connection/database.js';
import { quotaCte } from '../dispatch/quota.js';
import { statusEventSql } from '../log/log-rows.js';
import { sizeOf, USAGE_CTE } from '../tenants/usage.store.js';
import type { MessageKey } from './records.js';
import { INTERRUPTED_STATES, taskColumns, TERMINAL_STATES } from './task-row.js';

/**
 * What a key names from now on: another turn if it has expired or names the task that is gone, else what it has named before.
 * @param gone SQL of the task that is gone
 */
export function reuseKey(gone: string): string {
  const isFree = `k.expires_at <= now() OR k.task_id = ${gone}`;
  const columns = ['content', 'task_id', 'sequence', 'expires_at'];
  return columns
    .map((column) => `${column} = CASE WHEN ${isFree} THEN EXCLUDED.${column} ELSE k.${column} END`)
    .join(', ');
}

/**
 * CTEs `before` and `known`. `known` is the turn that a key names from now on. It is this one if the key is new, has
 * expired or names the task that is gone. If an earlier release knows the message (`before`), it is that turn. Concurrent
 * messages with the same key wait here for each other.
 * @param first number of the parameter with the key; its `keyValues` follow
 * @param sequence SQL of the sequence of the turn
 * @param when SQL that a turn which may be refused comes from
 */
function knownCte(first: number, sequence: string, when = ''): string {
  const [key, content, hours, gone, earlier] = [0, 1, 2, 3, 4].map((offset) => `$${first + offset}`);
  const orBefore = (column: string, now: string): string =>
    `coalesce((SELECT ${column} FROM before), ${now})`;
  return `before AS (
  SELECT task_id, sequence, content FROM message_keys
  WHERE tenant_id = $1::uuid AND key = ${earlier}::bytea AND expires_at > now() AND task_id IS DISTINCT FROM ${gone}::uuid
), known AS (
  INSERT INTO message_keys AS k (tenant_id, key, content, task_id, sequence, expires_at)
  SELECT $1::uuid, ${key}::bytea, ${orBefore('content', `${content}::bytea`)}, ${orBefore('task_id', '$2::uuid')},
    ${orBefore('sequence', sequence)}, now() + ${hours}::int * interval '1 hour' ${when}
  ON CONFLICT (tenant_id, key) DO UPDATE SET ${reuseKey(`${gone}::uuid`)}
  RETURNING k.task_id, k.sequence, k.content
)`;
}

/** The values of `knownCte`, in order. */
export const keyValues = ({ hash, content, hours, goneTaskId, earlierHash }: MessageKey): unknown[] => [
  hash,
  content,
  hours,
  goneTaskId,
  earlierHash,
];

/** $1 tenant $2 key $3 the task that is gone, NULL = none $4 the key of an earlier release, NULL = none */
export const FIND_KEY: Statement = {
  name: 'message-key-find',
  text: `
SELECT task_id, content FROM message_keys
WHERE tenant_id = $1 AND key IN ($2, $4) AND expires_at > now() AND task_id IS DISTINCT FROM $3::uuid
ORDER BY key = $2 DESC LIMIT 1`,
};

export interface KnownRow {
  task_id: string;
  content: Buffer | null;
}

/** The result of a guarded change: the state found, and the event's sequence; null = refused. */
export interface ChangedRow {
  state: TaskState;
  sequence: number | null;
}
export type CanceledRow = ChangedRow & {
  run_id: string | null;
  parent_task_id: string | null;
  child_tasks: number;
  push_configs: number;
  owner: string | null;
};
export interface AliasRow {
  task_id: string;
  agent_id: string;
}
export interface CreatedRow {
  /** The created task, or the existing one; null = the run was refused by the quota. */
  task_id: string | null;
  content?: Buffer | null;
  dispatched: boolean;
  /** Its run is claimed for the worker that was named. */
  claimed?: boolean;
  may_use_reserved: boolean;
}
export type ContinuedRow = ChangedRow & { dispatched: boolean; may_use_reserved: boolean; refused: boolean };
export interface HeadRow {
  id: string;
  last_sequence: number;
}

const sha256 = (text: string): string => `sha256(convert_to(${text}, 'UTF8'))`;
/** What the id of a caller is found by. Without an owner: as earlier releases have written it. */
const clientKey = (clientId: string, owner: string): string =>
  `coalesce(sha256(${sha256(owner)} || ${sha256(clientId)}), ${sha256(clientId)})`;

/** The columns of the retry policy. The parameter is an array in this order. */
export const RETRY = 'max_attempts, backoff_ms, backoff_factor, backoff_max_ms';
export const retryValues = (parameter: number): string =>
  [1, 2, 3, 4].map((i) => `($${parameter}::float8[])[${i}]`).join(', ');

/** How many native webhooks are told of a new task. A tenant without webhooks pays for one look at an index. */
export const webhooksOf = (task: string, agent: string): string =>
  `CASE WHEN EXISTS (SELECT FROM webhooks w WHERE w.tenant_id = $1 AND w.enabled)
    THEN attach_push_configs($1, ${task}, ${agent}) ELSE 0 END`;

const quotaAt = (first: number) => ({
  tenant_id: '$1',
  max_in_flight: `$${first}::int`,
  max_waiting: `$${first + 1}::int`,
});

/** If the quota refuses the run, nothing is written. */
const IF_ACCEPTED = 'FROM quota WHERE NOT quota.refused';

/**
 * Says which task the alias names from now on: the new one if the alias is new, or still names the previous
 * one. Creates of the same alias wait here for each other.
 */
const aliasCte = (condition = ''): string => `alias AS (
  INSERT INTO task_aliases AS a (tenant_id, agent_id, profile, client_key, client_id, task_id)
  SELECT $1::uuid, $3::text, $15::text, ${clientKey('$16::text', '$14::text')}, $16::text, $2::uuid ${condition}
  ON CONFLICT (tenant_id, profile, client_key, agent_id) DO UPDATE
    SET task_id = CASE WHEN a.task_id = $17 THEN EXCLUDED.task_id ELSE a.task_id END
  RETURNING a.task_id
)`;

/**
 * A task under the id of a caller, if the id names it. Tasks without such an id are created in groups: turn-acceptance.ts.
 * @param first number of the first parameter of the quota, after all others; then come the retry policy, and what the request says
 * beside the message
 */
const create = (name: string, first: number, id: string, condition: string, result: string): Statement => ({
  name,
  text: `
WITH ${quotaCte(quotaAt(first))}, ${id} task AS (
  INSERT INTO tasks (tenant_id, id, agent_id, context_id, context_key, state, status, status_at, metadata,
    last_sequence, artifacts_sequence, active_run_id, stored_bytes, owner, push_configs)
  SELECT $1, $2, $3, $4, md5($4)::uuid, $5, $6, $7, $8, 1, 1, $11, ${sizeOf('$9')} + coalesce(${sizeOf('$10')}, 0)
      + coalesce(${sizeOf(`$${first + 3}`)}, 0), $14::text, ${webhooksOf('$2', '$3')} ${condition}
), message AS (
  INSERT INTO task_messages (tenant_id, task_id, sequence, message, accepted_at, request)
  SELECT $1, $2, 1, $9, CASE WHEN $10::json IS NULL THEN $7::timestamptz END, $${first + 3}::json ${condition}
), event AS (
  INSERT INTO task_events (tenant_id, task_id, sequence, attempt, payload, artifact, bytes)
  SELECT * FROM (SELECT $1::uuid, $2::uuid, 1, 0, $10::json AS payload, 0, ${sizeOf('$10')} ${condition}) e WHERE payload IS NOT NULL
), run AS (
  INSERT INTO runs (tenant_id, id, task_id, state, start_sequence, extensions, traceparent, enqueued_at, ${RETRY})
  SELECT $1, $11, $2, 'queued', 1, $12, $13, CASE WHEN quota.dispatched THEN now() END,
    ${retryValues(first + 2)} ${condition}
)
SELECT ${result}`,
});

/**
 * $1 tenant $2 task $3 agent $4 context $5 state $6 status $7 at $8 metadata $9 message $10 event $11 run
 * $12 extensions $13 traceparent $14 owner $15 profile $16 client id $17 previous task … the quota, the retry policy and what the
 * request says beside the message
 */
export const CREATE_ALIASED = create(
  'task-create-aliased',
  18,
  `${aliasCte(IF_ACCEPTED)},`,
  'FROM quota, alias WHERE alias.task_id = $2',
  'task_id, dispatched, may_use_reserved FROM quota LEFT JOIN alias ON true',
);
/**
 * … $15 profile $16 client id $17 previous task $18 key $19 content $20 hours $21 task that is gone $22 key of an
 * earlier release … If only the alias names another task, the key names one that does not exist: it then counts as new.
 */
export const CREATE_ALIASED_KEYED = create(
  'task-create-aliased-keyed',
  23,
  `${knownCte(18, '1', IF_ACCEPTED)}, ${aliasCte('FROM known WHERE known.task_id = $2')},`,
  'FROM quota, alias WHERE alias.task_id = $2',
  `coalesce(alias.task_id, known.task_id) AS task_id, known.content, dispatched, may_use_reserved
   FROM quota LEFT JOIN known ON true LEFT JOIN alias ON true`,
);

/**
 * $1 tenant $2 profile $3 client id $4 agent, NULL = any: then the newest of its tasks $5 who has chosen the id $6 whether
 * also a caller of an earlier release. The alias of a deleted task stays as long as its tombstone.
 */
export const FIND_ALIAS: Statement = {
  name: 'task-find-alias',
  text: `
SELECT a.task_id, a.agent_id FROM task_aliases a
LEFT JOIN tasks t ON t.tenant_id = a.tenant_id AND t.id = a.task_id
WHERE a.tenant_id = $1 AND a.profile = $2 AND a.client_key IN (${clientKey('$3', '$5')}, CASE WHEN $6::boolean THEN ${sha256('$3')} END)
  AND ($4::text IS NULL OR a.agent_id = $4)
ORDER BY t.created_at DESC NULLS LAST, t.id DESC LIMIT 1`,
};

const TAKES_A_TURN = `held.state IN (${INTERRUPTED_STATES}) AND held.active_run_id IS NULL`;

/**
 * The agent is a condition that no index has: with it Postgres may take the index of conversations for the key.
 * The same rows whether or not the message has a key; with one, only if it names this turn.
 * @param first number of the first parameter of the quota, after all others; then come the retry policy, and what the request says
 * beside the message
 */
const next = (name: string, first: number, known: string, from: string, condition: string): Statement => ({
  name,
  text: `
WITH held AS (
  SELECT state, active_run_id, last_sequence FROM tasks
  WHERE tenant_id = ${keyOfTenant('$1')} AND id = $2 AND (agent_id = $3) IS TRUE FOR UPDATE
), ${quotaCte(quotaAt(first))}, ${known} task AS (
  UPDATE tasks t SET state = ${TaskState.TASK_STATE_SUBMITTED}, status = '{}', status_at = $6,
    last_sequence = t.last_sequence + 1, active_run_id = $4, attempt = 0, outcome = NULL,
    stored_bytes = t.stored_bytes + ${sizeOf('$7')} + coalesce(${sizeOf(`$${first + 3}`)}, 0), open_bytes = 0
  FROM ${from}
  WHERE t.tenant_id = ${keyOfTenant('$1')} AND t.id = $2 AND ${TAKES_A_TURN} AND NOT quota.refused ${condition}
  RETURNING t.id, t.context_id, t.last_sequence
), message AS (
  INSERT INTO task_messages (tenant_id, task_id, sequence, message, request)
  SELECT $1, t.id, t.last_sequence, $7, $${first + 3}::json FROM task t
), event AS (
  INSERT INTO task_events (tenant_id, task_id, sequence, attempt, payload, artifact)
  SELECT $1, t.id, t.last_sequence, 0, ${statusEventSql('$5')}, 0 FROM task t
), run AS (
  INSERT INTO runs (tenant_id, id, task_id, state, start_sequence, extensions, traceparent, enqueued_at, ${RETRY})
  SELECT $1, $4, t.id, 'queued', t.last_sequence, $8, $9, CASE WHEN quota.dispatched THEN now() END,
    ${retryValues(first + 2)}
  FROM task t, quota
)
SELECT held.state, task.last_sequence AS sequence, quota.dispatched, quota.may_use_reserved, quota.refused AND ${TAKES_A_TURN} AS refused
FROM held CROSS JOIN quota LEFT JOIN task ON true`,
});

/**
 * $1 tenant $2 task $3 agent $4 run $5 status $6 at $7 message $8 extensions $9 traceparent … the quota, the retry policy and what the
 * request says beside the message
 */
export const CONTINUE = next('task-continue', 10, '', 'held, quota', '');
/** … $10 key $11 content $12 hours $13 task that is gone $14 key of an earlier release … */
export const CONTINUE_KEYED = next(
  'task-continue-keyed',
  15,
  `${knownCte(10, 'held.last_sequence + 1', `FROM held, quota WHERE ${TAKES_A_TURN} AND NOT quota.refused`)},`,
  'held, quota, known',
  'AND known.task_id = $2 AND known.sequence = held.last_sequence + 1',
);

/**
 * What follows in the same transaction sees what the one before it has done: a statement that waits for the task
 * itself would see the task as it is then, but not the run that came with it. $1 tenant $2 task
 */
export const LOCK: Statement = {
  name: 'task-lock',
  text: `SELECT FROM tasks WHERE tenant_id = ${keyOfTenant('$1')} AND id = $2 FOR UPDATE`,
};

/**
 * $1 tenant $2 task $3 agent, NULL = any $4 status $5 at $6 owner, NULL = any $7 whether also a task without an owner
 * $8 metadata, NULL = as they are. `held` reads the run
 * before the update forgets it. The task is locked before.
 */
export const CANCEL: Statement = {
  name: 'task-cancel',
  text: `
WITH held AS (
  SELECT state, active_run_id, parent_task_id, child_tasks, push_configs, owner FROM tasks
  WHERE tenant_id = ${keyOfTenant('$1')} AND id = $2 AND ($3::text IS NULL OR agent_id = $3)
    AND ($6::text IS NULL OR owner = $6 OR owner IS NULL AND $7::boolean) FOR UPDATE
), task AS (
  UPDATE tasks t SET state = ${TaskState.TASK_STATE_CANCELED}, status = '{}', status_at = $5,
    last_sequence = t.last_sequence + 1, active_run_id = NULL, metadata = coalesce($8::json, t.metadata),
    stored_bytes = t.stored_bytes + CASE WHEN t.active_run_id IS NULL THEN 0 ELSE t.open_bytes END
  FROM held
  WHERE t.tenant_id = ${keyOfTenant('$1')} AND t.id = $2 AND held.state NOT IN (${TERMINAL_STATES})
  RETURNING t.id, t.context_id, t.last_sequence,
    CASE WHEN held.active_run_id IS NULL THEN 0 ELSE t.open_bytes END AS open_bytes
), event AS (
  INSERT INTO task_events (tenant_id, task_id, sequence, attempt, payload, artifact)
  SELECT $1, t.id, t.last_sequence, 0, ${statusEventSql('$4')}, 0 FROM task t
), run AS (
  UPDATE runs r SET state = 'canceled', finished_at = now(), lease_expires_at = NULL
  FROM task WHERE r.tenant_id = ${keyOfTenant('$1')} AND r.id = (SELECT active_run_id FROM held)
    AND ${hasState('queued', 'running', 'suspended')}
), ${USAGE_CTE}
SELECT held.state, held.active_run_id AS run_id, held.parent_task_id, held.child_tasks, held.push_configs, held.owner, task.last_sequence AS sequence
FROM held LEFT JOIN task ON true`,
};

const get = (name: string, artifacts: boolean): Statement => ({
  name,
  text: `SELECT ${taskColumns('$3::int', artifacts)} FROM tasks t WHERE t.tenant_id = ${keyOfTenant('$1')} AND t.id = $2`,
});

/** $1 tenant $2 task $3 history length, NULL = all */
export const GET = get('task-get', true);
export const GET_WITHOUT_ARTIFACTS = get('task-get-without-artifacts', false);

/** $1 tenant $2 agent $3 context $4 the task before which they were created $5 limit */
export const LIST_CONTEXT: Statement = {
  name: 'task-list-context',
  text: `
SELECT ${taskColumns('NULL::int', true, 'list')} FROM (
  SELECT c.* FROM tasks c
  WHERE c.tenant_id = $1 AND c.agent_id = $2 AND c.context_key = md5($3)::uuid AND c.context_id = $3
    AND (c.created_at, c.id) < ((SELECT created_at FROM tasks WHERE tenant_id = ${keyOfTenant('$1')} AND id = $4), $4)
    AND CASE WHEN c.owner IS NULL THEN NOT EXISTS (SELECT FROM tasks WHERE tenant_id = ${keyOfTenant('$1')} AND id = $4 AND owner LIKE 'guest:%')
      ELSE c.owner = (SELECT owner FROM tasks WHERE tenant_id = ${keyOfTenant('$1')} AND id = $4) END
  ORDER BY c.created_at DESC, c.id DESC LIMIT $5
) t ORDER BY t.created_at, t.id`,
};

/** Of deleted tasks, the heads they had. $1 tenants $2 tasks */
export const HEADS: Statement = {
  name: 'task-heads',
  text: `
SELECT k.task_id AS id, coalesce(t.last_sequence, d.last_sequence) AS last_sequence
FROM unnest($1::uuid[], $2::uuid[]) AS k(tenant_id, task_id)
LEFT JOIN tasks t ON t.tenant_id = ${keyOfTenant('k.tenant_id')} AND t.id = k.task_id
LEFT JOIN task_tombstones d ON d.tenant_id = k.tenant_id AND d.task_id = k.task_id
WHERE coalesce(t.last_sequence, d.last_sequence) IS NOT NULL`,
};

/** What the request that began the task said beside its message: $1 tenant $2 task */
export const FIRST_REQUEST: Statement = {
  name: 'task-first-request',
  text: `
SELECT request FROM task_messages WHERE tenant_id = $1 AND task_id = $2 ORDER BY sequence LIMIT 1`,
};
