import { IS_PARKED } from '../dispatch/parked-run.js';
import { Conditions } from './conditions.js';
import type { TaskFilter } from './task-records.js';

/** The placeholder of the tenant, which every statement of a list has first. */
export const TENANT = '$1';

/** What a list is made of: everything about a page but its position. */
export type ListedTasks = Pick<
  TaskFilter,
  'tenantId' | 'agentId' | 'agentIds' | 'own' | 'contextId' | 'state' | 'since' | 'until' | 'owner' | 'parked'
>;

/**
 * A query for the tasks of a list. Tasks of one owner and tasks without an owner are two queries: an index has each of
 * them in order, and both together in none.
 */
export function ofOwners(
  { own }: ListedTasks,
  where: Conditions,
  query: (conditions: string) => string,
): string {
  if (!own) return query(where.toString());
  const owners = [`t.owner = ${where.value(own.owner)}`, ...(own.unowned ? ['t.owner IS NULL'] : [])];
  return owners.map((owner) => query(`${where.toString()} AND ${owner}`)).join(' UNION ALL ');
}

/**
 * @param context what distinguishes contexts: the index has only the key, so the id is compared in each row. A count does without:
 * two ids of one key would have to be made on purpose.
 */
export function matching(
  { tenantId, agentId, agentIds, contextId, since, until, owner, parked }: ListedTasks,
  context: 'id' | 'key',
): Conditions {
  const where = new Conditions();
  where.add(`t.tenant_id = ${where.value(tenantId)}`);
  if (agentId !== undefined) where.add(`t.agent_id = ${where.value(agentId)}`);
  if (agentIds) where.add(`t.agent_id = ANY(${where.value(agentIds)}::text[])`);
  if (contextId !== undefined) {
    const id = where.value(contextId);
    where.add(`t.context_key = md5(${id}::text)::uuid`);
    if (context === 'id') where.add(`t.context_id = ${id}::text`);
  }
  if (owner !== undefined) where.add(`t.owner = ${where.value(owner)}`);
  if (parked) {
    where.add(`t.active_run_id IN (SELECT id FROM runs WHERE tenant_id = ${TENANT} AND ${IS_PARKED})`);
  }
  if (since) where.add(`t.status_at >= ${where.value(since)}`);
  if (until) where.add(`t.status_at < ${where.value(until)}`);
  return where;
}
