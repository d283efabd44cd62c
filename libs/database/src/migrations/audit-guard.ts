import { sessionConfig } from '@baton/postgres';
import type { Client } from 'pg';
import { type AuditAction, OPERATOR_ACTOR, PLATFORM } from '../audit/audit-records.js';
import { auditValues, RECORD } from '../audit/audit-sql.js';
import { beginIn, isSystemKeyRefused, SYSTEM_SCOPE } from '../connection/row-security.js';
import { inSession } from './in-session.js';
import { isUnused } from './is-unused.js';

/**
 * Who may delete records of the audit log. `owner`: only the owner of the table, whose functions the processes call.
 * `announced`: any role that first announces it in its transaction, as processes of release 0.2.0 do. `unknown`: the database does
 * not have the migration.
 */
export type AuditGuard = 'owner' | 'announced' | 'unknown';

/** Conditions of the trigger for a DELETE: without the guard the first, with it both. */
const IS_ANNOUNCED = `current_setting('baton.audit', true) = 'delete'`;
const IS_OWNER = `current_user = (SELECT pg_get_userbyid(relowner) FROM pg_class WHERE oid = TG_RELID)`;

/** It sets its own search_path, so that no function or operator of the session replaces one of its own. */
const defineTrigger = (
  condition: string,
): string => `CREATE OR REPLACE FUNCTION refuse_audit_change() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $body$
BEGIN
  IF TG_OP = 'DELETE' AND ${condition} THEN
    RETURN OLD;
  END IF;
  RAISE EXCEPTION 'audit_records is append-only: % is refused', TG_OP
    USING HINT = 'Retention deletes old records, and the deletion of a tenant those of the tenant (docs/operating/audit.md).';
END
$body$`;

const STATE = `SELECT to_regprocedure('delete_old_audit_records(double precision, integer)') IS NOT NULL AS "canDelete",
  prosrc LIKE '%relowner%' AS "isGuarded" FROM pg_proc WHERE oid = to_regprocedure('refuse_audit_change()')`;

/** Who may delete records of the audit log of this database. */
export async function auditGuardOf(client: Client): Promise<AuditGuard> {
  const [row] = (await client.query<{ canDelete: boolean; isGuarded: boolean }>(STATE)).rows;
  if (!row?.canDelete) return 'unknown';
  return row.isGuarded ? 'owner' : 'announced';
}

/**
 * Lets only the owner of the table delete records of the audit log, from now on. Processes of release 0.2.0 can then delete
 * neither old records nor a tenant. Only the owner may do this.
 * @param systemKey DATABASE_SYSTEM_KEY
 */
export const enforceAuditGuard = (databaseUrl: string, systemKey: string | undefined): Promise<void> =>
  define(databaseUrl, systemKey, { to: 'owner', action: 'audit-log.enforce' });

/**
 * The same for a database without processes of another release, such as a restored one. There is no record of it: the
 * guard holds from the beginning.
 * @param systemKey DATABASE_SYSTEM_KEY
 */
export const ensureAuditGuard = (databaseUrl: string, systemKey: string | undefined): Promise<void> =>
  define(databaseUrl, systemKey, { to: 'owner' });

/** Processes of release 0.2.0 may delete records again. @param systemKey DATABASE_SYSTEM_KEY */
export const releaseAuditGuard = (databaseUrl: string, systemKey: string | undefined): Promise<void> =>
  define(databaseUrl, systemKey, { to: 'announced', action: 'audit-log.release' });

/**
 * Sets the guard in a database without tenants. A used one may still have processes of release 0.2.0.
 * @param systemKey DATABASE_SYSTEM_KEY
 * @returns whether the guard holds now
 */
export async function guardAuditIfUnused(
  databaseUrl: string,
  systemKey: string | undefined,
): Promise<boolean> {
  const guard = await inSession(sessionConfig(databaseUrl), async (client) => {
    const found = await auditGuardOf(client);
    // A database that asks for another key is in use.
    if (found !== 'announced' || (await isSystemKeyRefused(client, systemKey))) return found;
    return (await isUnused(client, systemKey)) ? 'unused' : found;
  });
  if (guard === 'unused') await ensureAuditGuard(databaseUrl, systemKey);
  return guard !== 'announced';
}

interface Definition {
  to: 'owner' | 'announced';
  /** The record of it. */
  action?: AuditAction;
}

async function define(
  databaseUrl: string,
  systemKey: string | undefined,
  { to, action }: Definition,
): Promise<void> {
  await inSession(sessionConfig(databaseUrl), async (client) => {
    const guard = await auditGuardOf(client);
    if (guard === 'unknown') {
      throw new Error('the database has no guard of the audit log yet: run `npm run migrate` first');
    }
    if (guard === to) return;
    for (const statement of beginIn(SYSTEM_SCOPE, systemKey)) await client.query(statement);
    await client.query(defineTrigger(to === 'owner' ? `${IS_ANNOUNCED} AND ${IS_OWNER}` : IS_ANNOUNCED));
    if (action) {
      const target = { kind: 'database', name: 'audit log' } as const;
      await client.query(RECORD.text, [...auditValues(PLATFORM, { action, target, by: OPERATOR_ACTOR })]);
    }
    await client.query('COMMIT');
  });
}
