import { sessionConfig } from '@baton/postgres';
import type { EventEmitter } from 'node:events';
import { Client, escapeIdentifier, type QueryResultRow, type Submittable } from 'pg';
import { beginIn, SYSTEM_SCOPE } from '../connection/row-security.js';
import { assertSession, NO_TRANSACTION_TIMEOUT } from '../connection/session-check.js';
import { BackupError } from './backup-error.js';

/** A table of the database, and the properties that decide whether a role can read all of its rows. */
export interface Table {
  name: string;
  /** Columns that hold data; not the generated ones. */
  columns: string[];
  /** Tables that its foreign keys name. */
  parents: string[];
  isUnlogged: boolean;
  /** Row-level security binds the role of this session. */
  isBound: boolean;
  /** It binds the owner, too. */
  isForced: boolean;
  policies: { isPermissive: boolean; condition: string | null }[];
}

const TABLES = `
SELECT c.relname AS name, c.relpersistence = 'u' AS "isUnlogged", row_security_active(c.oid) AS "isBound",
  c.relforcerowsecurity AS "isForced",
  ARRAY(SELECT a.attname::text FROM pg_attribute a
    WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = '' ORDER BY a.attnum) AS columns,
  ARRAY(SELECT DISTINCT p.relname::text FROM pg_constraint f JOIN pg_class p ON p.oid = f.confrelid
    WHERE f.conrelid = c.oid AND f.contype = 'f' AND p.oid <> c.oid) AS parents,
  (SELECT coalesce(json_agg(json_build_object('isPermissive', p.polpermissive,
      'condition', pg_get_expr(p.polqual, p.polrelid))), '[]')
    FROM pg_policy p WHERE p.polrelid = c.oid AND p.polcmd IN ('*', 'r') AND EXISTS (
      SELECT 1 FROM unnest(p.polroles) AS r(id) WHERE r.id = 0 OR pg_has_role(current_user, r.id, 'USAGE'))) AS policies
FROM pg_class c
WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition AND c.relnamespace = current_schema()::regnamespace
ORDER BY c.relname`;

/** Like every session, it has no limit for a statement. */
const SETTINGS = { lock_timeout: '5min' };

/** A condition in which these occur may be true of an unknown value and false of a known one. */
const NOT_MONOTONIC = /\b(IS|COALESCE|CASE|NULLIF|EXISTS)\b/i;

/**
 * A condition that is one CASE whose first branch lets the scope of all tenants see every row, as the migrations make it:
 * what its other branches ask of a row does not matter. A session that has not shown the key gets an error and no rows.
 */
const LETS_SYSTEM_SEE_ALL =
  /^\s*CASE current_setting\('baton\.tenant'::text, true\)\s+WHEN 'system'::text THEN (?:true|\( SELECT (?:\w+\.)?system_scope_granted\(\) AS system_scope_granted\))\s(?:(?!\b(?:CASE|END)\b).)*\bEND\s*$/s;

/** One connection for a backup or a restore, in the scope of all tenants; or of one, for its export or import. */
export class BackupSession {
  private readonly client: Client;

  private constructor(
    databaseUrl: string,
    private readonly systemKey: string | undefined,
  ) {
    this.client = new Client({
      ...sessionConfig(databaseUrl, SETTINGS),
      application_name: 'baton-backup',
      connectionTimeoutMillis: 10_000,
      keepAlive: true,
    });
    this.client.on('error', () => undefined);
  }

  /**
   * Runs `work` on a connection, and closes it afterwards.
   * @param systemKey DATABASE_SYSTEM_KEY, for work in the scope of all tenants
   */
  static async open<T>(
    databaseUrl: string,
    work: (session: BackupSession) => Promise<T>,
    systemKey?: string,
  ): Promise<T> {
    const session = new BackupSession(databaseUrl, systemKey);
    try {
      await session.client.connect();
      await assertSession(session.client);
      await session.client.query(NO_TRANSACTION_TIMEOUT);
      return await work(session);
    } finally {
      await session.client.end();
    }
  }

  /** Commits when `work` resolves. After a failure the session cannot be used: closing it rolls back. */
  async transact<T>(
    mode: 'READ ONLY' | 'READ WRITE',
    work: () => Promise<T>,
    scope: string = SYSTEM_SCOPE,
  ): Promise<T> {
    for (const statement of beginIn(scope, this.systemKey, `ISOLATION LEVEL REPEATABLE READ ${mode}`)) {
      await this.client.query(statement);
    }
    const result = await work();
    await this.client.query('COMMIT');
    return result;
  }

  async query<Row extends QueryResultRow>(text: string, values: unknown[] = []): Promise<Row[]> {
    return (await this.client.query<Row>(text, values)).rows;
  }

  /** Starts a COPY; the stream belongs to the caller until it has ended. */
  copy<Stream extends Submittable & EventEmitter>(stream: Stream): Stream {
    // The reader or writer of the stream gets the error. A closed session has neither.
    stream.on('error', () => undefined);
    return this.client.query(stream);
  }

  /** All tables of the schema, each behind those that its foreign keys name. */
  async tables(): Promise<Table[]> {
    const waiting = await this.query<Table & QueryResultRow>(TABLES);
    const sorted: Table[] = [];
    while (waiting.length > 0) {
      const isFree = ({ parents }: Table) =>
        !parents.some((name) => waiting.some((each) => each.name === name));
      const next = waiting.findIndex(isFree);
      const [table] = waiting.splice(Math.max(next, 0), 1);
      if (table) sorted.push(table);
    }
    return sorted;
  }

  /**
   * Checks that this session sees all rows of the tables. Throws a BackupError that names the first table with hidden rows.
   * Where row-level security binds the role, the condition of each policy must hold in this session's scope for a row
   * of which nothing is known: then it holds for every row. Otherwise Postgres refuses statements for which a policy
   * would hide a row (`row_security = off`).
   */
  async assertSeesAll(tables: readonly Table[]): Promise<void> {
    for (const table of tables.filter(({ isBound }) => isBound)) {
      if (!(await this.isLifted(table))) {
        throw new BackupError(
          `Row-level security hides rows of ${table.name} from the role of DATABASE_URL, so a backup would be incomplete: ` +
            'its policies must let the scope "system" see all rows, as the migrations make them, or the role must have BYPASSRLS (docs/operating/backup.md).',
        );
      }
    }
    if (!tables.some(({ isBound }) => isBound)) await this.client.query('SET LOCAL row_security = off');
  }

  private async isLifted({ name, policies }: Table): Promise<boolean> {
    if (!policies.some(({ isPermissive }) => isPermissive)) return false;
    for (const { condition } of policies) {
      if (condition !== null && LETS_SYSTEM_SEE_ALL.test(condition)) continue;
      if (condition === null || NOT_MONOTONIC.test(condition)) return false;
      const table = escapeIdentifier(name);
      const [row] = await this.query<{ holds: boolean | null }>(
        `SELECT (${condition}) AS holds FROM (SELECT (NULL::${table}).*) AS ${table}`,
      );
      if (row?.holds !== true) return false;
    }
    return true;
  }
}
