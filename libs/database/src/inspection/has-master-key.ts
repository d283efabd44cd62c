import { sessionConfig } from '@baton/postgres';
import type { Client } from 'pg';
import { findMasterKey, isSealed, sessionOf } from '../connection/master-key-check.js';
import { beginIn, isSystemKeyRefused, SYSTEM_SCOPE } from '../connection/row-security.js';
import { inSession } from '../migrations/in-session.js';

/**
 * Whether the database was ever used with a master key, so that a new key would read none of its secrets. Rejects if the
 * database does not answer.
 * @param systemKey DATABASE_SYSTEM_KEY. If the database asks for another one, its keys were made before: true
 */
export const hasMasterKey = (databaseUrl: string, systemKey: string | undefined): Promise<boolean> =>
  inSession(sessionConfig(databaseUrl), async (client) => {
    if (await exists(client, 'system_scope_granted()', 'to_regprocedure')) {
      if (await isSystemKeyRefused(client, systemKey)) return true;
    }
    for (const statement of beginIn(SYSTEM_SCOPE, systemKey, 'READ ONLY')) await client.query(statement);
    const session = sessionOf(client);
    if ((await exists(client, 'installation')) && (await findMasterKey(session)) !== undefined) return true;
    return (await exists(client, 'webhooks')) && isSealed(session);
  });

async function exists(client: Client, name: string, find = 'to_regclass'): Promise<boolean> {
  const { rows } = await client.query<{ found: boolean }>(`SELECT ${find}($1) IS NOT NULL AS found`, [name]);
  return rows[0]?.found === true;
}
