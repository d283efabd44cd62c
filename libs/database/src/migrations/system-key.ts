import { sessionConfig } from '@baton/postgres';
import { createHash } from 'node:crypto';
import type { Client } from 'pg';
import { OPERATOR_ACTOR, PLATFORM } from '../audit/audit-records.js';
import { auditValues, RECORD } from '../audit/audit-sql.js';
import { beginIn, isSystemKeyRefused, SYSTEM_SCOPE } from '../connection/row-security.js';
import { inSession } from './in-session.js';
import { isUnused } from './is-unused.js';

/**
 * Whether a database asks for a key before it opens the scope of all tenants. `open`: it does not. `asks`: it does.
 * `unknown`: it does not have the migration.
 */
type SystemKeyState = 'open' | 'asks' | 'unknown';

/**
 * From now on the database opens the scope of all tenants only to sessions that show one of the keys. It keeps their SHA-256. Only
 * the owner of the tables may do this. Processes without a key fail from now on.
 * @param keys the key that processes have; then others that are accepted too, during a change
 */
export async function enforceSystemKey(databaseUrl: string, keys: readonly string[]): Promise<void> {
  const hashes = keys.map((key) => `'\\x${createHash('sha256').update(key).digest('hex')}'`);
  await define(databaseUrl, `LANGUAGE plpgsql STABLE PARALLEL SAFE AS $body$${bodyFor(hashes)}$body$`, {
    action: 'system-key.enforce',
    key: keys[0],
    detail: { keys: keys.length },
  });
}

/**
 * Every name has its schema, so that no search_path of a session changes what is compared. Postgres calls the function in
 * the scope of a tenant as well, without using the result: when a statement that waited for a row reads it again
 * (EvalPlanQual). So it raises in the scope of all tenants only.
 */
const bodyFor = (hashes: readonly string[]): string => `
BEGIN
  IF pg_catalog.sha256(pg_catalog.convert_to(pg_catalog.current_setting('baton.system_key', true), 'UTF8'))
      OPERATOR(pg_catalog.=) ANY (ARRAY[${hashes.join(', ')}]::pg_catalog.bytea[]) THEN
    RETURN true;
  END IF;
  IF pg_catalog.current_setting('baton.tenant', true) OPERATOR(pg_catalog.=) '${SYSTEM_SCOPE}' THEN
    RAISE EXCEPTION 'The scope of all tenants needs the key of this database'
      USING ERRCODE = 'insufficient_privilege',
        HINT = 'Set DATABASE_SYSTEM_KEY to it, as docs/operating/security.md says.';
  END IF;
  RETURN false;
END
`;

/** The database no longer asks for a key. */
export async function releaseSystemKey(databaseUrl: string): Promise<void> {
  await define(databaseUrl, 'LANGUAGE sql STABLE PARALLEL SAFE RETURN true', {
    action: 'system-key.release',
  });
}

/**
 * For an unused database: it requires the key from the beginning.
 * @returns whether it asks for a key now
 */
export async function enforceIfUnused(databaseUrl: string, key: string): Promise<boolean> {
  const mayEnforce = await inSession(sessionConfig(databaseUrl), async (client) =>
    (await stateOf(client)) === 'open' ? isUnused(client, key) : undefined,
  );
  if (mayEnforce) await enforceSystemKey(databaseUrl, [key]);
  return mayEnforce !== false;
}

/** For a database of one installation: it requires this key from now on. */
export async function ensureSystemKey(databaseUrl: string, key: string): Promise<void> {
  const isDone = await inSession(sessionConfig(databaseUrl), async (client) => {
    const state = await stateOf(client);
    if (state !== 'asks') return state === 'unknown';
    return !(await isSystemKeyRefused(client, key)) && !(await isOutdated(client));
  });
  if (!isDone) await enforceSystemKey(databaseUrl, [key]);
}

/** The function is one of a build that raised in every scope. */
async function isOutdated(client: Client): Promise<boolean> {
  const { rows } = await client.query<{ body: string }>(
    `SELECT prosrc AS body FROM pg_proc WHERE oid = 'system_scope_granted()'::regprocedure`,
  );
  return rows[0]?.body.includes('baton.tenant') === false;
}

async function stateOf(client: Client): Promise<SystemKeyState> {
  const { rows } = await client.query<{ found: boolean }>(
    `SELECT to_regprocedure('system_scope_granted()') IS NOT NULL AS found`,
  );
  if (!rows[0]?.found) return 'unknown';
  return (await isSystemKeyRefused(client, undefined)) ? 'asks' : 'open';
}

interface SystemKeyChange {
  action: 'system-key.enforce' | 'system-key.release';
  key?: string | undefined;
  detail?: Record<string, unknown>;
}

async function define(
  databaseUrl: string,
  definition: string,
  { action, key, detail }: SystemKeyChange,
): Promise<void> {
  await inSession(sessionConfig(databaseUrl), async (client) => {
    if ((await stateOf(client)) === 'unknown') {
      throw new Error('the database has no place for a key yet: run `npm run migrate` first');
    }
    for (const statement of beginIn(SYSTEM_SCOPE, key)) await client.query(statement);
    await client.query(`CREATE OR REPLACE FUNCTION system_scope_granted() RETURNS boolean ${definition}`);
    const target = { kind: 'database', name: 'system key' } as const;
    const values = auditValues(PLATFORM, { action, target, by: OPERATOR_ACTOR, ...(detail && { detail }) });
    await client.query(RECORD.text, [...values]);
    await client.query('COMMIT');
  });
}
