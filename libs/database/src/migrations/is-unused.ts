import type { Client } from 'pg';
import { beginIn, SYSTEM_SCOPE } from '../connection/row-security.js';

/**
 * Whether the database is unused: it has no tenants. In a transaction of its own.
 * @param systemKey DATABASE_SYSTEM_KEY, which opens the scope of all tenants
 */
export async function isUnused(client: Client, systemKey: string | undefined): Promise<boolean> {
  for (const statement of beginIn(SYSTEM_SCOPE, systemKey)) await client.query(statement);
  const { rows } = await client.query('SELECT FROM tenants LIMIT 1');
  await client.query('COMMIT');
  return rows.length === 0;
}
