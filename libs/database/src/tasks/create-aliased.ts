import type { Database } from '../connection/database.js';
import { type Inputs, one, statement } from '../sql/statement.js';
import { quotaCte } from '../dispatch/quota.js';
import { FIRST_EVENT, insertEvents } from '../log/insert-events.js';
import { sizeOf } from '../tenants/usage-sql.js';
import { acceptTurns } from './accept-turns.js';
import { clientKey } from './client-key.js';
import { KEY, knownCte } from './message-key.js';
import { type CreatedRow, NEW_TASK, type NewTaskRow, webhooksOf } from './new-task-row.js';
import { QUOTA } from './quota-inputs.js';
import type { NewAlias } from './task-records.js';
import { RETRY, retryColumns } from './retry-policy.js';

interface AliasedRow extends NewTaskRow {
  alias: NewAlias;
}

const TASK = {
  tenant_id: ['uuid', ({ input }) => input.tenantId],
  ...NEW_TASK,
  status: ['json', ({ status }) => status],
  metadata: ['json', ({ metadata }) => metadata],
  message: ['json', ({ message }) => message],
  /** NULL = the message stands for it. */
  event: ['json', ({ event }) => event],
  /** The request without its message. */
  request: ['json', ({ details }) => details],
  extensions: ['text[]', ({ input }) => input.extensions],
  profile: ['text', ({ alias }) => alias.profile],
  client_id: ['text', ({ alias }) => alias.clientId],
  /** The task that the alias names so far. */
  previous_task_id: ['uuid', ({ alias }) => alias.previousTaskId],
} satisfies Inputs<AliasedRow>;

type TaskSql = Record<keyof typeof TASK, string>;

/** If the quota refuses the run, nothing is written. */
const IF_ACCEPTED = 'FROM quota WHERE NOT quota.refused';

/**
 * Says which task the alias names from now on: the new one if the alias is new, or still names the previous
 * one. Creates of the same alias wait here for each other.
 */
const aliasCte = (task: TaskSql, condition: string): string => `alias AS (
  INSERT INTO task_aliases AS a (tenant_id, agent_id, profile, client_key, client_id, task_id)
  SELECT ${task.tenant_id}, ${task.agent_id}, ${task.profile}, ${clientKey(task.client_id, task.owner)}, ${task.client_id}, ${task.task_id} ${condition}
  ON CONFLICT (tenant_id, profile, client_key, agent_id) DO UPDATE
    SET task_id = CASE WHEN a.task_id = ${task.previous_task_id} THEN EXCLUDED.task_id ELSE a.task_id END
  RETURNING a.task_id
)`;

/**
 * A task under the id of a caller, if the id names it. Tasks without such an id are created in batches: create-batch.ts.
 * @param named CTEs that say which task the id names
 * @param result SQL of the answer
 */
const createNamed = (
  t: TaskSql,
  quota: Record<keyof typeof QUOTA, string>,
  named: string,
  result: string,
): string => {
  const condition = `FROM quota, alias WHERE alias.task_id = ${t.task_id}`;
  return `
WITH ${quotaCte({ ...quota, tenant_id: t.tenant_id })}, ${named}, task AS (
  INSERT INTO tasks (tenant_id, id, agent_id, context_id, context_key, state, status, status_at, metadata,
    last_sequence, artifacts_sequence, active_run_id, stored_bytes, owner, push_configs)
  SELECT ${t.tenant_id}, ${t.task_id}, ${t.agent_id}, ${t.context_id}, md5(${t.context_id})::uuid, ${t.state}, ${t.status}, ${t.status_at},
    ${t.metadata}, 1, 1, ${t.run_id}, ${sizeOf(t.message)} + coalesce(${sizeOf(t.event)}, 0) + coalesce(${sizeOf(t.request)}, 0), ${t.owner},
    ${webhooksOf(t.tenant_id, t.task_id, t.agent_id)} ${condition}
), message AS (
  INSERT INTO task_messages (tenant_id, task_id, sequence, message, accepted_at, request)
  SELECT ${t.tenant_id}, ${t.task_id}, 1, ${t.message}, CASE WHEN ${t.event} IS NULL THEN ${t.status_at} END, ${t.request} ${condition}
), event AS (
  ${insertEvents(
    { ...FIRST_EVENT, tenant_id: t.tenant_id, task_id: t.task_id, payload: t.event, bytes: sizeOf(t.event) },
    `${condition} AND ${t.event} IS NOT NULL`,
  )}
), run AS (
  INSERT INTO runs (tenant_id, id, task_id, state, start_sequence, extensions, traceparent, enqueued_at, agent_label,
    agent_version, ${RETRY})
  SELECT ${t.tenant_id}, ${t.run_id}, ${t.task_id}, 'queued', 1, ${t.extensions}, ${t.traceparent}, CASE WHEN quota.dispatched THEN now() END,
    ${t.agent_label}, ${t.agent_version}, ${retryColumns(quota.retry)} ${condition}
)
SELECT ${result}`;
};

const CREATE_ALIASED = statement(
  'task-create-aliased-2',
  { task: one(TASK), quota: one(QUOTA) },
  ({ task, quota }) =>
    createNamed(
      task,
      quota,
      aliasCte(task, IF_ACCEPTED),
      'task_id, dispatched, may_use_reserved FROM quota LEFT JOIN alias ON true',
    ),
);

/** If only the alias names another task, the task of the key does not exist: the key then counts as new. */
const CREATE_ALIASED_KEYED = statement(
  'task-create-aliased-keyed-2',
  { task: one(TASK), quota: one(QUOTA), key: one(KEY) },
  ({ task, quota, key }) =>
    createNamed(
      task,
      quota,
      `${knownCte(key, { ...task, sequence: '1', from: IF_ACCEPTED })},
  ${aliasCte(task, `FROM known WHERE known.task_id = ${task.task_id}`)}`,
      `coalesce(alias.task_id, known.task_id) AS task_id, known.content, dispatched, may_use_reserved
   FROM quota LEFT JOIN known ON true LEFT JOIN alias ON true`,
    ),
);

/** Creates a task under an id of the caller's. */
export async function createAliased(
  database: Database,
  row: NewTaskRow,
  alias: NewAlias,
): Promise<CreatedRow | undefined> {
  const { input } = row;
  const { tenantId, task, key, quota } = input;
  const inputs = { task: { ...row, alias }, quota: input };
  const [created] = await acceptTurns<CreatedRow>(database, {
    tenantId,
    ...(key
      ? { statement: CREATE_ALIASED_KEYED, values: CREATE_ALIASED_KEYED.values({ ...inputs, key }) }
      : { statement: CREATE_ALIASED, values: CREATE_ALIASED.values(inputs) }),
    quota,
    written: (rows) =>
      rows.flatMap(({ task_id }) =>
        task_id === task.id ? [{ taskId: task.id, sequence: 1, bytes: row.bytes }] : [],
      ),
    extras: { child: input.child, push: input.push },
  });
  return created;
}
