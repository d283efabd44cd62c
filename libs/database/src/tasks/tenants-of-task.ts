import { isUuid } from '@baton/a2a';
import type { Database } from '../connection/database.js';
import { keyOfTenant } from '../connection/row-security.js';
import { type Inputs, one, statement } from '../sql/statement.js';

const TASK = { id: ['uuid', ({ id }) => id] } satisfies Inputs<{ id: string }>;

/** The key of a task begins with its tenant, so each tenant is looked up in turn: some 10 ms for 2,000 tenants. */
const TENANTS_OF_TASK = statement(
  'tenants-of-task',
  { task: one(TASK) },
  ({ task }) => `
SELECT t.slug FROM tenants t
CROSS JOIN LATERAL (SELECT FROM tasks k WHERE k.tenant_id = ${keyOfTenant('t.id')} AND k.id = ${task.id}) found
ORDER BY t.slug`,
);

/** Slugs of the tenants that have a task with this id: one at most, unless callers have chosen the id. */
export async function tenantsOfTask(database: Database, id: string): Promise<string[]> {
  if (!isUuid(id)) return [];
  const rows = await database.systemQuery<{ slug: string }>(
    TENANTS_OF_TASK,
    TENANTS_OF_TASK.values({ task: { id } }),
  );
  return rows.map(({ slug }) => slug);
}
