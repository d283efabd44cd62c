import type { MasterKeyIds } from '@baton/config';
import type { ClientBase, QueryResultRow } from 'pg';
import { beginIn, SYSTEM_SCOPE } from './row-security.js';
import { isReadOnly } from './transient.js';
import { MasterKeyError } from './master-key-error.js';

/** The row of `installation` with the id of the key that the secrets of this database are encrypted with. */
const MASTER_KEY = 'master_key';

/** The id of the key of the database. */
export const FIND_MASTER_KEY = { text: `SELECT value AS id FROM installation WHERE name = '${MASTER_KEY}'` };
const ADD = {
  text: `INSERT INTO installation (name, value) VALUES ('${MASTER_KEY}', $1) ON CONFLICT DO NOTHING`,
};
const SEALED_TABLES = ['secrets', 'push_configs', 'webhooks'];
/** Tables of later releases: older databases do not have them. Nothing is in them before a database has a key. */
const LATER_SEALED_TABLES = ['oauth_connections', 'oauth_clients'];

/** Ids of the keys that have encrypted something, with the number of values: the key with the most values first. */
const sealedBy = (tables: readonly string[]) => ({
  text: `SELECT key_id AS id, count(*)::int AS count FROM (${tables.map((table) => `SELECT key_id FROM ${table}`).join(' UNION ALL ')}) AS sealed
    WHERE key_id IS NOT NULL GROUP BY key_id ORDER BY count(*) DESC, key_id`,
});
const SEALED_BY = sealedBy(SEALED_TABLES);
export const ALL_SEALED_BY = sealedBy([...SEALED_TABLES, ...LATER_SEALED_TABLES]);

const SET = {
  text: `INSERT INTO installation (name, value) VALUES ('${MASTER_KEY}', $1)
    ON CONFLICT (name) DO UPDATE SET value = excluded.value, updated_at = now()`,
};

const TABLE_EXISTS = `SELECT to_regclass('installation') IS NOT NULL AS found`;

/** A transaction across tenants. */
export interface SystemSession {
  query<Row extends QueryResultRow>(statement: { text: string }, values: readonly unknown[]): Promise<Row[]>;
}

/** A connection whose transaction is across tenants. */
export const sessionOf = (client: ClientBase): SystemSession => ({
  query: async ({ text }, values) => (await client.query<never>(text, [...values])).rows,
});

/**
 * For a new connection: rejects with `MasterKeyError` if this process does not have the master key of the database. The first process sets
 * the key of a database that has none, if it has the keys of all secrets there.
 *
 * The id of a key proves the key: only the same 32 bytes give it.
 * @param systemKey DATABASE_SYSTEM_KEY
 * @returns false if this cannot be checked now: a migration of the keys is pending, or this is a standby
 */
export async function assertMasterKey(
  client: ClientBase,
  keys: MasterKeyIds,
  systemKey: string | undefined,
): Promise<boolean> {
  const { rows } = await client.query<{ found: boolean }>(TABLE_EXISTS);
  if (!rows[0]?.found) return false;
  try {
    // Without names: a pooler for transactions does not keep prepared statements.
    for (const statement of beginIn(SYSTEM_SCOPE, systemKey)) {
      await client.query({ ...statement, name: undefined });
    }
    await checkMasterKey(sessionOf(client), keys);
    await client.query('COMMIT');
    return true;
  } catch (error) {
    await client.query('ROLLBACK').catch(() => undefined);
    if (isReadOnly(error)) return false;
    throw error;
  }
}

/** Rejects with `MasterKeyError` if that of the database is not one of these keys. A database without a key gets one, as above. */
export async function checkMasterKey(session: SystemSession, keys: MasterKeyIds): Promise<void> {
  const id = (await findMasterKey(session)) ?? (await adopt(session, keys));
  if (id !== undefined && !has(keys, id)) throw refusal(id, keys);
}

/** @returns the key of the database from now on; undefined if secrets have several keys, and not all of them are here */
async function adopt(session: SystemSession, keys: MasterKeyIds): Promise<string | undefined> {
  const rows = await session.query<{ id: string }>(SEALED_BY, []);
  const [first] = rows;
  const known = rows.filter(({ id }) => has(keys, id));
  if (first && known.length === 0) throw refusal(first.id, keys);
  // An operator has to decide. `baton doctor` reports it, and a rotation ends it.
  if (known.length < rows.length) return undefined;
  // In the middle of a change of keys, the earlier one is still that of the database.
  const takesNewest = !first || rows.some(({ id }) => id === keys.newest);
  await session.query(ADD, [takesNewest ? keys.newest : first.id]);
  // Another process may have been first.
  return findMasterKey(session);
}

/** The id of the key of the database. Undefined: it has none yet. */
export async function findMasterKey(session: SystemSession): Promise<string | undefined> {
  const [row] = await session.query<{ id: string }>(FIND_MASTER_KEY, []);
  return row?.id;
}

const has = ({ newest, previous }: MasterKeyIds, id: string): boolean =>
  id === newest || previous.includes(id);

const refusal = (id: string, { newest, setting, ifLost }: MasterKeyIds): MasterKeyError =>
  new MasterKeyError(
    `${setting} gives the key ${newest}, and the secrets of this database are encrypted with the key ${id}: let ` +
      `${setting} give that key, or add it to BATON_MASTER_KEY_PREVIOUS to change keys. If it is lost, ` +
      `run "${ifLost}" (docs/operating/secrets.md#the-master-key).`,
  );

/** Whether anything in the database is encrypted. */
export async function isSealed(session: SystemSession): Promise<boolean> {
  return (await session.query(SEALED_BY, [])).length > 0;
}

/** From now on the newest of these keys is that of the database. */
export async function changeMasterKey(session: SystemSession, { newest }: MasterKeyIds): Promise<void> {
  await session.query(SET, [newest]);
}
