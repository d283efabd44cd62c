import { randomBytes } from 'node:crypto';
import { Client, type DatabaseError } from 'pg';

/** Name of the migrated, empty database that every test's database is a copy of. */
export const TEMPLATE = 'baton_template';

/** Copies files. That is half of the work of writing each page to the log, which is the default. Release 14 does it anyway. */
const STRATEGY = process.env.TEST_POSTGRES === '14' ? '' : 'STRATEGY FILE_COPY';

/** The SQLSTATE of a database that still has sessions. */
const OBJECT_IN_USE = '55006';

/** A database for one test file. */
export interface TestDatabase {
  url: string;
  /** Removes it, open connections or not. */
  drop(): Promise<void>;
}

/** A fresh, migrated database on the test server. Its role is no superuser, so row-level security binds it. */
export async function createDatabase(): Promise<TestDatabase> {
  const name = `test_${randomBytes(6).toString('hex')}`;
  await asAdministrator(`CREATE DATABASE ${name} TEMPLATE ${TEMPLATE} ${STRATEGY}`);
  return {
    url: databaseUrl(name),
    drop: () => dropDatabase(databaseUrl(name)),
  };
}

/**
 * Removes a database, also with open connections. Not with FORCE: that needs the right to end every session in it,
 * also an autovacuum worker, which belongs to the superuser. A plain DROP asks autovacuum to leave, with no right.
 */
export async function dropDatabase(url: string): Promise<void> {
  const name = new URL(url).pathname.slice(1);
  const administration = new URL(url);
  administration.pathname = '/postgres';
  const client = new Client({ connectionString: administration.toString() });
  await client.connect();
  try {
    await client.query(`ALTER DATABASE ${name} ALLOW_CONNECTIONS false`);
    for (;;) {
      await client.query(
        'SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1 AND usename = current_user',
        [name],
      );
      try {
        await client.query(`DROP DATABASE ${name}`);
        return;
      } catch (error) {
        // Postgres waits five seconds for the sessions to end. On a slow machine they may need longer.
        if ((error as DatabaseError).code !== OBJECT_IN_USE) throw error;
      }
    }
  } finally {
    await client.end();
  }
}

/** The URL of another database of the test server. */
export function databaseUrl(name: string): string {
  const url = new URL(process.env.TEST_DATABASE_URL ?? '');
  url.pathname = `/${name}`;
  return url.toString();
}

/** One statement outside of every test's database (a template must have no connections). */
export async function asAdministrator(statement: string): Promise<void> {
  const client = new Client({ connectionString: databaseUrl('postgres') });
  await client.connect();
  try {
    await client.query(statement);
  } finally {
    await client.end();
  }
}

/** What happens while a table is missing from a test's database. */
export async function withoutTable<T>(url: string, table: string, act: () => Promise<T>): Promise<T> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    await client.query(`ALTER TABLE ${table} RENAME TO ${table}_away`);
    return await act();
  } finally {
    await client.query(`ALTER TABLE ${table}_away RENAME TO ${table}`);
    await client.end();
  }
}
