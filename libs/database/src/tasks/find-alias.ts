import type { OwnTasks } from '@baton/a2a';
import type { Database } from '../connection/database.js';
import { type Inputs, one, statement } from '../sql/statement.js';
import { clientKey, unownedClientKey } from './client-key.js';
import type { TaskAlias } from './task-records.js';

/** An id that a caller has chosen, and the owner of the task that it may name. */
interface WantedAlias extends TaskAlias {
  tenantId: string;
  /** Unset: of any agent of the tenant; if several have such a task, the newest. */
  agentId?: string | undefined;
  /** The principal that has chosen the id. With `unowned`, also a caller of an earlier release. */
  own: OwnTasks;
}

interface AliasRow {
  task_id: string;
  agent_id: string;
}

const ALIAS = {
  tenant_id: ['uuid', ({ tenantId }) => tenantId],
  profile: ['text', ({ profile }) => profile],
  client_id: ['text', ({ clientId }) => clientId],
  agent_id: ['text', ({ agentId }) => agentId],
  owner: ['text', ({ own }) => own.owner],
  unowned: ['boolean', ({ own }) => own.unowned],
} satisfies Inputs<WantedAlias>;

/** The alias of a deleted task stays as long as its tombstone. */
const FIND_ALIAS = statement(
  'task-find-alias',
  { alias: one(ALIAS) },
  ({ alias }) => `
SELECT a.task_id, a.agent_id FROM task_aliases a
LEFT JOIN tasks t ON t.tenant_id = a.tenant_id AND t.id = a.task_id
WHERE a.tenant_id = ${alias.tenant_id} AND a.profile = ${alias.profile}
  AND a.client_key IN (${clientKey(alias.client_id, alias.owner)}, CASE WHEN ${alias.unowned} THEN ${unownedClientKey(alias.client_id)} END)
  AND (${alias.agent_id} IS NULL OR a.agent_id = ${alias.agent_id})
ORDER BY t.created_at DESC NULLS LAST, t.id DESC LIMIT 1`,
);

/** The task that a caller's id names. */
export async function findAlias(
  database: Database,
  alias: WantedAlias,
): Promise<{ taskId: string; agentId: string } | undefined> {
  // Postgres has no text with U+0000, so no task has such an id.
  if (alias.clientId.includes('\0')) return undefined;
  const [row] = await database.tenantQuery<AliasRow>(
    alias.tenantId,
    FIND_ALIAS,
    FIND_ALIAS.values({ alias }),
  );
  return row && { taskId: row.task_id, agentId: row.agent_id };
}
