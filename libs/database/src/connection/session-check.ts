import { SESSION_SETTINGS } from '@baton/postgres';
import type { ClientBase } from 'pg';
import { DatabaseSetupError } from './database-setup-error.js';

/** Settings besides `SESSION_SETTINGS`. The database, the driver or the administrator sets them. */
const REQUIRED = {
  server_encoding: 'UTF8',
  client_encoding: 'UTF8',
  // Otherwise no trigger and no foreign key works.
  session_replication_role: 'origin',
};

const { default_transaction_isolation, default_transaction_deferrable } = SESSION_SETTINGS;
/** They take effect with the next transaction. A transaction cannot set them for itself. */
export const NOT_IN_TRANSACTION = { default_transaction_isolation, default_transaction_deferrable };

/** Timeouts: each kind of connection has its own. */
const OWN_TIMEOUTS = ['statement_timeout', 'lock_timeout', 'idle_in_transaction_session_timeout'];

/** For a session whose transactions last. Only releases from 17 on have this setting. */
export const NO_TRANSACTION_TIMEOUT = `SELECT set_config(name, '0', false) FROM pg_settings WHERE name = 'transaction_timeout'`;

const READ = `SELECT name, current_setting(name) AS value, current_user::text AS role, current_database()::text AS database
  FROM unnest($1::text[]) AS n(name)`;

interface SessionRow {
  name: string;
  value: string;
  role: string;
  database: string;
}

/**
 * Rejects with `DatabaseSetupError` if this session does not have the settings that statements rely on: the database has another
 * encoding, or a pooler drops what a session sets at its start.
 * @param isPooled each transaction sets them
 */
export async function assertSession(client: ClientBase, isPooled = false): Promise<void> {
  const expected: Record<string, string> = {
    ...REQUIRED,
    ...(isPooled ? NOT_IN_TRANSACTION : SESSION_SETTINGS),
  };
  const names = Object.keys(expected).filter((name) => !OWN_TIMEOUTS.includes(name));
  const { rows } = await client.query<SessionRow>(READ, [names]);
  const wrong = rows.find(({ name, value }) => value !== expected[name]);
  if (wrong) throw new DatabaseSetupError(sentenceOf(wrong, expected[wrong.name] ?? ''));
}

function sentenceOf({ name, value, role, database }: SessionRow, expected: string): string {
  if (name === 'server_encoding') {
    return (
      `The database "${database}" has the encoding ${value}, so it cannot store every text: create another one ` +
      "with ENCODING 'UTF8' TEMPLATE template0, and restore a backup into it (docs/operating/backup.md)."
    );
  }
  if (name in NOT_IN_TRANSACTION || name in REQUIRED) {
    return (
      `The setting ${name} of Postgres is ${value} for the role "${role}", and Baton relies on ${expected}: ` +
      `ALTER ROLE "${role}" IN DATABASE "${database}" SET ${name} = '${expected}' as an administrator.`
    );
  }
  return (
    `The setting ${name} is ${value} in a session that has asked for ${expected}, so a pooler drops what sessions ask for: ` +
    'set DATABASE_DIRECT_URL to Postgres itself (docs/operating/postgres.md#a-pooler).'
  );
}
