import type { ClientBase } from 'pg';

/** The scope of work across tenants, such as the sweeper's. `system-scope.spec.ts` lists where it is used, and why. */
export const SYSTEM_SCOPE = 'system';

/** The pattern of `isUuid` in libs/a2a. The thread that keeps leases loads this file, and not that whole library. */
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** The scope of one tenant. Throws unless the id is a uuid: it becomes part of the text of a statement. */
export function tenantScope(tenantId: string): string {
  if (!UUID.test(tenantId)) throw new TypeError('A tenant id must be a uuid');
  return tenantId;
}

/**
 * SQL that sets the scope: row-level security compares `baton.tenant` with the tenant of each row.
 * @param reach LOCAL: until the transaction ends. SESSION: as long as the connection lasts.
 */
export const setScope = (scope: string, reach: 'LOCAL' | 'SESSION' = 'LOCAL'): string =>
  `SET ${reach} baton.tenant = '${scope}'`;

/**
 * The role of DATABASE_URL is not bound by row-level security. The message is one plain sentence with the remedy,
 * shown as it is.
 */
export class RowSecurityError extends Error {
  override readonly name = 'RowSecurityError';
}

/** `row_security_active` is false for whoever bypasses it, and for tables that do not have or force it. */
const BOUND = `
SELECT r.rolname AS role, r.rolsuper OR r.rolbypassrls AS bypasses, ARRAY(
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
  open: string[];
}

/** Rejects with `RowSecurityError` if the connection's role could see rows of other tenants. */
export async function assertBound(client: ClientBase): Promise<void> {
  const { rows } = await client.query<BoundRow>(BOUND);
  const [{ role, bypasses, open } = { role: '', bypasses: true, open: [] }] = rows;
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
}
