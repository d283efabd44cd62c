import { PostgresClient, sessionConfig } from '@baton/postgres';
import type { Client, DatabaseError } from 'pg';
import { type AuditGuard, auditGuardOf } from '../migrations/audit-guard.js';
import { findShiftedTimes, type ShiftedTimes } from '../migrations/shifted-times.js';
import { Database } from '../connection/database.js';
import { migrationNames } from '../connection/migrations-folder.js';
import { ALL_SEALED_BY, FIND_MASTER_KEY } from '../connection/master-key-check.js';
import { assertBound, beginIn, isSystemKeyRefused, SYSTEM_SCOPE } from '../connection/row-security.js';
import { assertSession } from '../connection/session-check.js';
import { DatabaseSetupError } from '../connection/database-setup-error.js';
import { isDiskFull, plainError } from '../connection/transient.js';

/** How long to wait for a connection, and for each answer. */
const ANSWER_MS = 5_000;

/** The state of a database. No value of it is a secret. */
export interface DatabaseFacts {
  /** Such as `18.4`. */
  version: string;
  /** Such as 180004. */
  versionNumber: number;
  host: string;
  database: string;
  role: string;
  /** The role owns the tables, so it could remove their row security. */
  ownsTables: boolean;
  /** Tables that the role may not read or write as Baton does. */
  refusedTables: string[];
  /** Why sessions do not have what statements rely on, with the remedy; undefined = they do. */
  session: string | undefined;
  /** Times that an earlier release has stored wrongly; undefined while migrations are pending, or if it takes too long to find out. */
  shiftedTimes: ShiftedTimes | undefined;
  /** Why row security does not isolate tenants from this role, with the remedy; undefined = it does. */
  rowSecurity: string | undefined;
  /** Whether the scope of all tenants needs DATABASE_SYSTEM_KEY. */
  asksForSystemKey: boolean;
  /** Who may delete records of the audit log. */
  auditGuard: AuditGuard;
  migrations: {
    /** This build needs them, and the database does not have them. */
    pending: string[];
    /** The database has them, and this build does not. */
    unknown: string[];
    /** Begun and not finished. */
    unfinished: string[];
  };
  /** Clock of Postgres minus that of this machine, in ms. */
  clockOffsetMs: number;
  /** How uncertain that is: half of the time that the answer took, in ms. */
  clockErrorMs: number;
  /** A standby, or a session that may only read. */
  isReadOnly: boolean;
  /** It could not write some hundred KiB, because its disk is full. */
  isDiskFull: boolean;
  /** Settings of the server by name, as `SHOW` prints them. */
  settings: Readonly<Record<(typeof SETTINGS)[number], string>>;
  /** Connections of all clients, and how many the server allows. */
  connections: { used: number; max: number };
  /** Size of the database, in bytes. */
  bytes: number;
  /** Folder of the data; undefined if the role may not see it. */
  dataDirectory: string | undefined;
  /** By id: how many values each master key has encrypted. Empty while migrations are pending. */
  sealedBy: { keyId: string; count: number }[];
  /** The id of the master key of the database; undefined if it has none yet. */
  masterKeyId: string | undefined;
  /** Tenants that an earlier release has made, without a retention of their own. */
  tenantsWithoutRetention: number;
}

const INSUFFICIENT_PRIVILEGE = '42501';
const SETTINGS = ['fsync', 'synchronous_commit', 'full_page_writes', 'synchronous_standby_names'] as const;

const ABOUT = `SELECT current_setting('server_version') AS version, current_setting('server_version_num')::int AS "versionNumber",
  current_user::text AS role, current_database()::text AS database,
  pg_is_in_recovery() OR current_setting('transaction_read_only') = 'on' AS "isReadOnly",
  (SELECT sum(numbackends)::int FROM pg_stat_database) AS used,
  current_setting('max_connections')::int AS max, pg_database_size(current_database())::float8 AS bytes,
  ${SETTINGS.map((name) => `current_setting('${name}') AS ${name}`).join(', ')}`;

/** Only the tables of Baton: the schema may have others. */
const RIGHTS = `SELECT c.relname::text AS name, pg_has_role(c.relowner, 'USAGE') AS owns,
  has_table_privilege(c.oid, 'SELECT') AND has_table_privilege(c.oid, 'INSERT') AS writes
FROM pg_class c WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition AND c.relname <> '_prisma_migrations'
  AND c.relnamespace = current_schema()::regnamespace ORDER BY c.relname`;

const CLOCK = 'SELECT extract(epoch FROM clock_timestamp())::float8 * 1000 AS ms';
const HISTORY = `SELECT migration_name AS name, finished_at IS NOT NULL AS applied FROM _prisma_migrations WHERE rolled_back_at IS NULL`;
const WITHOUT_RETENTION = `SELECT count(*)::int AS count FROM tenants
WHERE predates_retention AND deleting_at IS NULL AND limits::jsonb->'retentionDays' IS NULL`;

/**
 * Reads from a database what an operator needs to repair it. Changes nothing. Rejects if it does not answer.
 * @param systemKey DATABASE_SYSTEM_KEY
 */
export async function inspectDatabase(url: string, systemKey: string | undefined): Promise<DatabaseFacts> {
  const client = new PostgresClient({
    ...sessionConfig(url, { statement_timeout: String(ANSWER_MS) }),
    application_name: 'baton-doctor',
    reachMs: ANSWER_MS,
    connectMs: ANSWER_MS,
    answerMs: ANSWER_MS,
  });
  try {
    await client.connect();
    return await factsOf(client, url, systemKey);
  } catch (error) {
    throw plainError(error);
  } finally {
    await client.end().catch(() => undefined);
  }
}

/** Rejects if a pooler for transactions does not answer, or if its sessions have settings that no transaction can change. */
export async function inspectPooler(url: string): Promise<void> {
  const timeouts = { connectMs: ANSWER_MS, statementMs: ANSWER_MS, answerMs: ANSWER_MS };
  const pooled = new Database({ url, poolSize: 1, isPooled: true, allowRlsBypass: true, timeouts });
  try {
    await pooled.ping();
  } finally {
    await pooled.close();
  }
}

async function factsOf(client: Client, url: string, systemKey: string | undefined): Promise<DatabaseFacts> {
  const about = await one<FactsRow>(client, ABOUT);
  const { version, versionNumber, role, database, isReadOnly, used, max, bytes } = about;
  const tables = (await client.query<{ name: string; owns: boolean; writes: boolean }>(RIGHTS)).rows;
  const migrations = await migrationsOf(client, role);
  return {
    // Packages add their own version: `17.5 (Debian 17.5-1)`.
    version: version.split(' ', 1)[0] ?? version,
    versionNumber,
    role,
    database,
    isReadOnly,
    isDiskFull: !isReadOnly && (await findsDiskFull(client)),
    bytes,
    host: `${client.host}:${client.port}`,
    ownsTables: tables.some(({ owns }) => owns),
    refusedTables: tables.filter(({ writes }) => !writes).map(({ name }) => name),
    session: await refusalOf(assertSession(client)),
    rowSecurity: await refusalOf(assertBound(client, systemKey)),
    asksForSystemKey: await isSystemKeyRefused(client, undefined).catch(() => false),
    auditGuard: await auditGuardOf(client),
    migrations,
    ...(await clockOf(client)),
    settings: {
      fsync: about.fsync,
      synchronous_commit: about.synchronous_commit,
      full_page_writes: about.full_page_writes,
      synchronous_standby_names: about.synchronous_standby_names,
    },
    connections: { used, max },
    dataDirectory: await dataDirectoryOf(client),
    ...(migrations.pending.length === 0
      ? await acrossTenants(client, url, systemKey)
      : { sealedBy: [], masterKeyId: undefined, shiftedTimes: undefined, tenantsWithoutRetention: 0 }),
  };
}

type FactsRow = Pick<
  DatabaseFacts,
  'version' | 'versionNumber' | 'role' | 'database' | 'isReadOnly' | 'bytes'
> &
  DatabaseFacts['connections'] &
  DatabaseFacts['settings'];

async function one<T extends object>(client: Client, text: string): Promise<T> {
  const { rows } = await client.query<T>(text);
  if (!rows[0]) throw new Error('Postgres has answered with no row');
  return rows[0];
}

async function migrationsOf(client: Client, role: string): Promise<DatabaseFacts['migrations']> {
  const known = migrationNames();
  const { found } = await one<{ found: boolean }>(
    client,
    `SELECT to_regclass('_prisma_migrations') IS NOT NULL AS found`,
  );
  const history = found ? await historyOf(client, role) : [];
  const applied = new Set(history.filter((each) => each.applied).map(({ name }) => name));
  return {
    pending: known.filter((name) => !applied.has(name)),
    unknown: [...applied].filter((name) => !known.includes(name)).sort(),
    unfinished: history.filter((each) => !each.applied).map(({ name }) => name),
  };
}

/** Throws DatabaseSetupError if the role has no rights on the tables, as after a restore by another one. */
async function historyOf(client: Client, role: string): Promise<{ name: string; applied: boolean }[]> {
  try {
    return (await client.query<{ name: string; applied: boolean }>(HISTORY)).rows;
  } catch (error) {
    if ((error as Partial<DatabaseError>).code !== INSUFFICIENT_PRIVILEGE) throw error;
    throw new DatabaseSetupError(
      `${role} may not read the table _prisma_migrations: as the owner of the tables (MIGRATE_DATABASE_URL), run GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO "${role}" (docs/operating/security.md#the-role-of-database_url).`,
    );
  }
}

async function refusalOf(check: Promise<void>): Promise<string | undefined> {
  try {
    await check;
    return undefined;
  } catch (error) {
    if (error instanceof DatabaseSetupError) return error.message;
    throw error;
  }
}

/** The first answer takes longer: Postgres plans. */
async function clockOf(client: Client): Promise<{ clockOffsetMs: number; clockErrorMs: number }> {
  let best = { clockOffsetMs: 0, clockErrorMs: Infinity };
  for (let i = 0; i < 3; i++) {
    const before = performance.now();
    const { ms } = await one<{ ms: number }>(client, CLOCK);
    const clockErrorMs = (performance.now() - before) / 2;
    const clockOffsetMs = ms + clockErrorMs - Date.now();
    if (clockErrorMs < best.clockErrorMs) best = { clockOffsetMs, clockErrorMs };
  }
  return best;
}

/** Only roles with `pg_read_all_settings` may see it. */
/** A temporary table needs room as any other. A role that may make none learns nothing. */
const SOME_ROWS = `CREATE TEMP TABLE baton_doctor ON COMMIT DROP AS SELECT md5(n::text) AS text FROM generate_series(1, 10000) AS n`;

async function findsDiskFull(client: Client): Promise<boolean> {
  await client.query('BEGIN');
  try {
    await client.query(SOME_ROWS);
    return false;
  } catch (error) {
    return isDiskFull(error);
  } finally {
    await client.query('ROLLBACK').catch(() => undefined);
  }
}

async function dataDirectoryOf(client: Client): Promise<string | undefined> {
  const { folder } = await one<{ folder: string | null }>(
    client,
    `SELECT setting AS folder FROM pg_settings WHERE name = 'data_directory' UNION ALL SELECT NULL LIMIT 1`,
  );
  return folder ?? undefined;
}

/** The data that only the scope of all tenants can read. Absent: `rowSecurity` and `refusedTables` have the reason. */
async function acrossTenants(
  client: Client,
  url: string,
  systemKey: string | undefined,
): Promise<Pick<DatabaseFacts, 'sealedBy' | 'masterKeyId' | 'shiftedTimes' | 'tenantsWithoutRetention'>> {
  const inScope = async <T>(ask: () => Promise<T>): Promise<T | undefined> => {
    try {
      for (const statement of beginIn(SYSTEM_SCOPE, systemKey, 'READ ONLY')) await client.query(statement);
      return await ask();
    } catch {
      return undefined;
    } finally {
      await client.query('ROLLBACK').catch(() => undefined);
    }
  };
  const keys = await inScope(() => client.query<{ id: string; count: number }>(ALL_SEALED_BY));
  const record = await inScope(() => client.query<{ id: string }>(FIND_MASTER_KEY));
  const undecided = await inScope(() => one<{ count: number }>(client, WITHOUT_RETENTION));
  return {
    tenantsWithoutRetention: undecided?.count ?? 0,
    sealedBy: (keys?.rows ?? [])
      .map(({ id: keyId, count }) => ({ keyId, count }))
      .toSorted((a, b) => (a.keyId < b.keyId ? -1 : 1)),
    masterKeyId: record?.rows[0]?.id,
    shiftedTimes: await inScope(() => findShiftedTimes(client, url)),
  };
}
