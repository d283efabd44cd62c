import type { ClientBase, QueryConfig } from 'pg';
import { RowSecurityError } from './row-security-error.js';

/** The scope of work across tenants, such as the sweeper's. `system-scope.spec.ts` lists where it is used, and why. */
export const SYSTEM_SCOPE = 'system';

/**
 * SQL of the condition on `tenant_id` for a row of `tasks` or `runs` that is found by its key. Use it in statements with a
 * name, whose plans connections keep. Postgres does not see the length of this list and expects the rows of ten tenants. With `=` and
 * no statistics it expects one row of a tenant. An index of all rows of the tenant then costs as much as the key, and
 * Postgres would continue reading it when the table is large.
 * @param tenant SQL of a uuid
 */
export const keyOfTenant = (tenant: string): string => `ANY((ARRAY[${tenant}]::uuid[])[1:1])`;

/** The pattern of `isUuid` in libs/a2a. The thread that keeps leases loads this file, and not that whole library. */
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** The scope of one tenant. Throws unless the id is a uuid: it becomes part of the text of a statement. */
export function tenantScope(tenantId: string): string {
  if (!UUID.test(tenantId)) throw new TypeError('A tenant id must be a uuid');
  return tenantId;
}

/**
 * The statement that enters the scope of all tenants. The key is a value and not part of the text: other sessions see the
 * text in `pg_stat_activity`.
 * @param systemKey DATABASE_SYSTEM_KEY
 * @param reach how long it lasts
 */
export function systemScope(
  systemKey: string | undefined,
  reach: 'transaction' | 'session' = 'transaction',
): QueryConfig & { values: string[] } {
  const isLocal = reach === 'transaction';
  return {
    name: `system-scope-${reach}`,
    text: `SELECT set_config('baton.tenant', '${SYSTEM_SCOPE}', ${isLocal}), set_config('baton.system_key', $1, ${isLocal})`,
    values: [systemKey ?? ''],
  };
}

/**
 * The statements that begin a transaction in a scope: row-level security compares `baton.tenant` with the tenant of each row.
 * @param mode options of BEGIN
 */
export const beginIn = (scope: string, systemKey: string | undefined, mode = ''): QueryConfig[] =>
  scope === SYSTEM_SCOPE
    ? [{ text: `BEGIN ${mode}` }, systemScope(systemKey)]
    : [{ text: `BEGIN ${mode}; SET LOCAL baton.tenant = '${scope}'` }];

/**
 * The plan cache mode of prepared statements. `for the values`: custom plans. Postgres plans a statement at least five times on each
 * connection, and then as long as custom plans are estimated cheaper. `generic`: it plans once. Planning a statement that writes a group
 * takes longer than its execution.
 */
export type Plans = 'generic' | 'for the values';

/**
 * The prepared statement that enters a scope for the rest of a transaction.
 * @param systemKey DATABASE_SYSTEM_KEY
 * @param plans of the statements of a tenant
 */
export function scopeOf(
  scope: string,
  systemKey: string | undefined,
  plans: Plans,
): QueryConfig & { values: string[] } {
  if (scope === SYSTEM_SCOPE) return systemScope(systemKey);
  const enter = `SELECT set_config('baton.tenant', $1, true)`;
  return plans === 'generic'
    ? {
        name: 'tenant-scope-generic',
        text: `${enter}, set_config('plan_cache_mode', 'force_generic_plan', true)`,
        values: [scope],
      }
    : { name: 'tenant-scope', text: enter, values: [scope] };
}

/** `row_security_active` is false for roles that bypass it, and for tables that do not have or force it. */
const BOUND = `
SELECT r.rolname AS role, r.rolsuper OR r.rolbypassrls AS bypasses,
  to_regprocedure('system_scope_granted()') IS NOT NULL AS "hasKey", ARRAY(
  SELECT c.relname::text FROM pg_class c
  WHERE c.relkind IN ('r', 'p') AND c.relnamespace = current_schema()::regnamespace
    AND (c.relname = 'tenants' OR EXISTS (SELECT 1 FROM pg_attribute a
      WHERE a.attrelid = c.oid AND a.attname = 'tenant_id' AND NOT a.attisdropped))
    AND NOT row_security_active(c.oid)
  ORDER BY c.relname
) AS open
FROM pg_roles r WHERE r.rolname = current_user`;

interface BoundRow {
  role: string;
  bypasses: boolean;
  /** The migration of the key was applied. */
  hasKey: boolean;
  open: string[];
}

/** In one statement, after which the session has no scope and no key again. */
const TRY_KEY = `SELECT CASE WHEN set_config('baton.tenant', '${SYSTEM_SCOPE}', true) IS NOT NULL
  AND set_config('baton.system_key', $1, true) IS NOT NULL THEN system_scope_granted() END`;
const REFUSED = '42501';

/** Whether the database asks for a key before it opens the scope of all tenants, and not for this one. */
export const isSystemKeyRefused = (client: ClientBase, systemKey: string | undefined): Promise<boolean> =>
  client.query(TRY_KEY, [systemKey ?? '']).then(
    () => false,
    (error: unknown) => {
      if ((error as { code?: unknown }).code === REFUSED) return true;
      throw error;
    },
  );

/**
 * Rejects with `RowSecurityError` if the connection's role could see rows of other tenants, or if the scope of all tenants
 * has another key.
 */
export async function assertBound(client: ClientBase, systemKey: string | undefined): Promise<void> {
  const { rows } = await client.query<BoundRow>(BOUND);
  const [{ role, bypasses, hasKey, open } = { role: '', bypasses: true, hasKey: false, open: [] }] = rows;
  if (bypasses) {
    throw new RowSecurityError(
      `The role "${role}" of DATABASE_URL bypasses row-level security, so the database does not isolate tenants: ` +
        'use a role that is not a superuser and has no BYPASSRLS (docs/operating/security.md shows how to create one), ' +
        'or set ALLOW_RLS_BYPASS=true to run without this protection.',
    );
  }
  if (open.length > 0) {
    throw new RowSecurityError(
      `Row-level security does not bind the role "${role}" on ${open.join(', ')}, so the database does not ` +
        'isolate tenants: ENABLE and FORCE it on these tables as the migrations do, ' +
        'or set ALLOW_RLS_BYPASS=true to run without this protection.',
    );
  }
  if (hasKey && (await isSystemKeyRefused(client, systemKey))) {
    throw new RowSecurityError(
      `DATABASE_SYSTEM_KEY is ${systemKey === undefined ? 'not set' : 'not the key of this database'}, so the database does ` +
        'not open the scope of all tenants: set it to the key that `npm run migrate` has (docs/operating/security.md).',
    );
  }
}
