import { sessionConfig } from '@baton/postgres';
import { PrismaPg } from '@prisma/adapter-pg';
import { bindMigrationAwareSqlAdapterFactory } from '@prisma/driver-adapter-utils';
import type { MigrationList } from '@prisma/schema-engine-wasm';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { Client, type DatabaseError, Pool } from 'pg';
import { migrationsFolder } from '../connection/migrations-folder.js';
import { assertSession, NO_TRANSACTION_TIMEOUT } from '../connection/session-check.js';
import { plainError } from '../connection/transient.js';
import { guardAuditIfUnused } from './audit-guard.js';
import type { Migration } from './migration-file.js';
import { MigrationSession, type MigrationOptions } from './migration-session.js';
import { loadSchemaEngine } from './schema-engine.js';
import { correctShiftedTimes } from './shifted-times.js';
import { grantDefaultPrivileges } from './role-rights.js';
import { StepRunner } from './step-runner.js';
import { enforceIfUnused } from './system-key.js';
import { compressTexts } from './text-compression.js';

export interface MigrateOptions extends Partial<MigrationOptions> {
  /** Default: `prisma/migrations` of this project. */
  folder?: string;
  /** Role of the processes. If the database has no tables yet, it gets the rights to read and write them. */
  role?: string | undefined;
}

interface MigrationSet {
  folder: string;
  all: Migration[];
  /** Migrations that the database does not have. */
  pending: Migration[];
  /** Migrations that were begun and not finished: their process died, or they failed. */
  unfinished: Migration[];
}

/**
 * Held by the session that applies migrations, so that it ends with whatever that session was doing. Release 0.1.0 waits for its own lock in a statement that lasts, which
 * would keep a concurrent index build waiting for ever; hence another number than that release's (4712083001).
 */
const MIGRATION_LOCK = 4_712_083_002;
/** A process that waits for the lock continues this soon after it is free. */
const LOOK_AGAIN_MS = 250;

/** Callers wait no longer for a migration that waits for a lock. */
const LOCK_TIMEOUT_MS = 2_000;
/** After this an operator has to end the session that holds the lock. */
const LOCK_PATIENCE_MS = 600_000;

const HISTORY_EXISTS = `SELECT to_regclass('_prisma_migrations') IS NOT NULL AS found`;
const HISTORY = `SELECT migration_name AS name, finished_at IS NOT NULL AS "isApplied" FROM _prisma_migrations
  WHERE rolled_back_at IS NULL`;
const LOCK_HOLDER = `SELECT l.pid FROM pg_locks l WHERE locktype = 'advisory' AND granted
  AND (classid::bigint << 32) + objid::bigint = $1 AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`;

/**
 * Applies the pending migrations of `prisma/migrations` while the system is in use, and notes them in Prisma's own table as `prisma
 * migrate deploy` does. Safe to run in several processes at once: one works, the others wait for it. After a failure or crash the
 * next call continues where this one stopped. Then it has Postgres compress long texts with LZ4 (`compressTexts`), and corrects times that
 * an earlier release has stored wrongly (`correctShiftedTimes`).
 * A database without tenants then has the guard of its audit log (`guardAuditIfUnused`), and asks for the `systemKey`.
 * @returns the names of the migrations applied
 */
export async function migrate(databaseUrl: string, options: MigrateOptions = {}): Promise<string[]> {
  const settled = withDefaults(options);
  const { systemKey, report } = settled;
  const applied = await applyPending(databaseUrl, settled);
  if (options.folder === undefined) {
    await compressTexts(databaseUrl, settled);
    const mended = await correctShiftedTimes(databaseUrl, systemKey);
    if (mended > 0) {
      report(
        `Mended ${mended} times that an earlier release had stored in the time zone of Postgres in place of UTC.`,
      );
    }
  }
  if (options.folder === undefined && !(await guardAuditIfUnused(databaseUrl, systemKey))) {
    report(
      'Processes may still delete records of the audit log, as release 0.2.0 does. When no process of that release is left, run ' +
        '`npm run migrate -- --audit-log enforce`.',
    );
  }
  if (systemKey !== undefined && !(await enforceIfUnused(databaseUrl, systemKey))) {
    report(
      'DATABASE_SYSTEM_KEY is set, but the database does not ask for it yet. When every process has it, run ' +
        '`npm run migrate -- --system-key enforce`.',
    );
  }
  return applied;
}

const withDefaults = (options: MigrateOptions): MigrateOptions & MigrationOptions => ({
  lockTimeoutMs: LOCK_TIMEOUT_MS,
  lockPatienceMs: LOCK_PATIENCE_MS,
  ...options,
  report: options.report ?? (() => undefined),
});

async function applyPending(
  databaseUrl: string,
  options: MigrateOptions & MigrationOptions,
): Promise<string[]> {
  const { report } = options;
  const sessions = [1, 2].map(() => openSession(databaseUrl));
  const [client, watch] = sessions as [Client, Client];
  try {
    await Promise.all(sessions.map((session) => prepare(session)));
    const folder = options.folder ?? migrationsFolder();
    const all = await readMigrations(folder);
    if ((await findPending(client, all)).pending.length === 0) return [];
    await takeLock(client, report);
    const [exists] = (await client.query<{ found: boolean }>(HISTORY_EXISTS)).rows;
    if (options.role !== undefined && !exists?.found) await grantDefaultPrivileges(client, options.role);
    const set = { folder, all, ...(await findPending(client, all)) };
    const { pending } = set;
    if (pending.length === 0) return [];
    report(`${pending.length} of ${all.length} migrations are pending.`);
    const runner = new StepRunner(new MigrationSession(client, watch, options));
    await applyMigrations(databaseUrl, set, async (migration) => {
      report(`[${pending.indexOf(migration) + 1}/${pending.length}] ${migration.name}`);
      await runner.run(migration).catch((error: unknown) => {
        throw explain(migration, error);
      });
    });
    await runner.forgetProgress();
    return pending.map(({ name }) => name);
  } catch (error) {
    throw plainError(error);
  } finally {
    await Promise.all(sessions.map((session) => session.end().catch(() => undefined)));
  }
}

/** The migrations that `migrate` would apply, in order. */
export async function pendingMigrations(databaseUrl: string, folder?: string): Promise<Migration[]> {
  const session = openSession(databaseUrl);
  try {
    await session.connect();
    return (await findPending(session, await readMigrations(folder ?? migrationsFolder()))).pending;
  } catch (error) {
    throw plainError(error);
  } finally {
    await session.end().catch(() => undefined);
  }
}

/** Postgres' own parser is WebAssembly and takes 4 to 7 MB once it is loaded. Only migrations load it. */
async function readMigrations(folder: string): Promise<Migration[]> {
  const file = await import('./migration-file.js');
  return file.readMigrations(folder);
}

function openSession(databaseUrl: string): Client {
  const session = new Client({ ...sessionConfig(databaseUrl), application_name: 'baton-migrate' });
  session.on('error', () => undefined);
  return session;
}

/** Like every session, it has no limit for a statement, or for the wait for a lock. */
async function prepare(session: Client): Promise<void> {
  await session.connect();
  await assertSession(session);
  await session.query(NO_TRANSACTION_TIMEOUT);
  // The server then ends the statement of a killed process. Not every platform supports this.
  await session.query(`SET client_connection_check_interval = '1s'`).catch(() => undefined);
}

/**
 * Waits for its turn with short statements: a long one would hold a snapshot, and a concurrent index build of the other process
 * would wait for its end.
 */
async function takeLock(session: Client, report: (line: string) => void): Promise<void> {
  for (let isReported = false; ; isReported = true) {
    const { rows } = await session.query<{ taken: boolean }>('SELECT pg_try_advisory_lock($1) AS taken', [
      MIGRATION_LOCK,
    ]);
    if (rows[0]?.taken) return;
    if (!isReported) {
      const [holder] = (await session.query<{ pid: number }>(LOCK_HOLDER, [MIGRATION_LOCK])).rows;
      report(
        `Another process migrates this database (pid ${holder?.pid ?? '?'} in Postgres). Waiting for it.`,
      );
    }
    await delay(LOOK_AGAIN_MS);
  }
}

async function findPending(
  session: Client,
  all: Migration[],
): Promise<Pick<MigrationSet, 'pending' | 'unfinished'>> {
  const [exists] = (await session.query<{ found: boolean }>(HISTORY_EXISTS)).rows;
  const history = exists?.found
    ? (await session.query<{ name: string; isApplied: boolean }>(HISTORY)).rows
    : [];
  const applied = new Set(history.filter(({ isApplied }) => isApplied).map(({ name }) => name));
  const pending = all.filter(({ name }) => !applied.has(name));
  const begun = new Set(history.filter(({ isApplied }) => !isApplied).map(({ name }) => name));
  return { pending, unfinished: pending.filter(({ name }) => begun.has(name)) };
}

/** Prisma's engine keeps its table and calls `apply` for each pending migration instead of sending its script. */
async function applyMigrations(
  databaseUrl: string,
  { folder, all, pending, unfinished }: MigrationSet,
  apply: (migration: Migration) => Promise<void>,
): Promise<void> {
  const waiting = [...pending];
  const adapters = new InSteps(databaseUrl, async (script) => {
    const next = waiting.shift();
    if (next?.sql !== script)
      throw new Error(`Prisma applies another migration than ${next?.name ?? 'none'}`);
    await apply(next);
  });
  const { SchemaEngine } = await loadSchemaEngine();
  const bound = bindMigrationAwareSqlAdapterFactory(adapters);
  const engine = await SchemaEngine.new({ datamodels: undefined }, () => undefined, bound);
  try {
    // A migration that failed or whose process died: what it has done is undone or noted by us, so it may run again.
    for (const { name } of unfinished) await engine.markMigrationRolledBack({ migrationName: name });
    await engine.applyMigrations({
      migrationsList: migrationList(all, folder),
      filters: { externalTables: [], externalEnums: [] },
    });
  } catch (error) {
    throw adapters.failure ?? error;
  } finally {
    engine.free();
    await adapters.close();
  }
}

const migrationList = (migrations: Migration[], baseDir: string): MigrationList => ({
  baseDir,
  lockfile: {
    path: 'migration_lock.toml',
    content: readFileSync(join(baseDir, 'migration_lock.toml'), 'utf8'),
  },
  shadowDbInitScript: '',
  migrationDirectories: migrations.map(({ name, sql }) => ({
    path: name,
    migrationFile: { path: 'migration.sql', content: { tag: 'ok', value: sql } },
  })),
});

/** The error with the name of the failed migration, the reason, and Postgres' detail about the rows. That of a lost connection stays as it is. */
function explain({ name }: Migration, error: unknown): unknown {
  if (!(error instanceof Error) || plainError(error) !== error) return error;
  const { detail } = error as Partial<DatabaseError>;
  return new Error(`${name}: ${error.message}${detail ? `: ${detail}` : ''}`, { cause: error });
}

/** Gives the scripts of migrations to us. Statements of the engine itself take the adapter's own way. */
class InSteps extends PrismaPg {
  failure: unknown;
  private readonly pool: Pool;

  constructor(
    databaseUrl: string,
    private readonly execute: (script: string) => Promise<void>,
  ) {
    const pool = new Pool({ ...sessionConfig(databaseUrl), application_name: 'baton-migrate' });
    pool.on('error', () => undefined);
    super(pool);
    this.pool = pool;
  }

  override async connect(): ReturnType<PrismaPg['connect']> {
    const adapter = await super.connect();
    const own = adapter.executeScript.bind(adapter);
    adapter.executeScript = async (script) => {
      if (script.includes('_prisma_migrations')) return own(script);
      await this.execute(script).catch((error: unknown) => {
        this.failure = error;
        throw error;
      });
    };
    return adapter;
  }

  async close(): Promise<void> {
    await this.pool.end();
  }
}
