import { once } from 'node:events';
import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Writable } from 'node:stream';
import { finished } from 'node:stream/promises';
import { escapeIdentifier } from 'pg';
import { from as copyFrom } from 'pg-copy-streams';
import { migrationNames, migrationsFolder } from '../connection/migrations-folder.js';
import { plainError } from '../connection/transient.js';
import { migrate } from '../migrations/migrate.js';
import { ensureAuditGuard } from '../migrations/audit-guard.js';
import { enforceSystemKey } from '../migrations/system-key.js';
import { type Checksums, isSame, type Manifest, readArchive } from './archive.js';
import { ArchiveCheck } from './archive-check.js';
import { verifyBackup } from './verify-backup.js';
import { BackupError } from './backup-error.js';
import { type BackedUp, digestOf, partition, releaseOf, type Report } from './backup.js';
import { BackupSession, type Table } from './backup-session.js';

export interface RestoreOptions {
  /** Role of the processes, if another one owns the tables: it gets the rights to read and write them. */
  role?: string | undefined;
  /** Opens the backup. Called once if it can be read only once. */
  open: () => AsyncIterable<Uint8Array>;
  canBeReadTwice: boolean;
  /** Delete everything in the database first. */
  force: boolean;
  report: Report;
}

/** A backup that was restored. */
export interface Restored {
  manifest: Manifest;
  /** Runs that were running at the time of the backup. They are executed again. */
  interruptedRuns: number;
  /** Migrations that were applied to the restored tables. */
  migrated: string[];
}

/** BullMQ's tables, if Postgres carries the queue. They hold only deliveries. The next process creates them again. */
const QUEUE_SCHEMA = 'bullmq';

const OTHER_PROCESSES = `SELECT count(*)::int AS count FROM pg_stat_activity
  WHERE datname = current_database() AND pid <> pg_backend_pid() AND application_name LIKE 'baton%'`;
const DATABASE_NAME = 'SELECT current_database() AS name';
const ROUTINES = `SELECT p.oid::regprocedure::text AS name FROM pg_proc p
  WHERE p.pronamespace = current_schema()::regnamespace AND pg_has_role(p.proowner, 'USAGE')
    AND NOT EXISTS (SELECT 1 FROM pg_depend d WHERE d.objid = p.oid AND d.deptype = 'e')`;
/** Long ago: the sweep of the first worker finds them and puts them on the queue, as after a crash of a worker. */
const EXPIRE_LEASES = `UPDATE runs SET lease_expires_at = 'epoch' WHERE state = 'running' RETURNING id`;

/**
 * Puts a backup into an empty database: applies the migrations that the backup was made with, loads all rows in one
 * transaction, compares what is stored with the checksums of the backup, and migrates to this release.
 * If anything fails, the database stays empty. No process of Baton may use the database meanwhile.
 * @throws BackupError with what to do
 */
export async function restoreBackup(
  { databaseUrl, databaseSystemKey }: BackedUp,
  options: RestoreOptions,
): Promise<Restored> {
  const { open, canBeReadTwice, report } = options;
  try {
    if (canBeReadTwice) {
      assertKnown(await verifyBackup(open()));
      report('The backup is complete.');
    }
    const restored = await BackupSession.open(
      databaseUrl,
      async (session) => {
        await empty(session, options.force);
        const loaded = await load(session, databaseUrl, options);
        await session.query('ANALYZE');
        return { ...loaded, migrated: await migrate(databaseUrl) };
      },
      databaseSystemKey,
    );
    // The key is that of this database: the backup has none.
    if (databaseSystemKey !== undefined) await enforceSystemKey(databaseUrl, [databaseSystemKey]);
    // No process of any release uses the database.
    await ensureAuditGuard(databaseUrl, databaseSystemKey);
    return restored;
  } catch (error) {
    throw plainError(error);
  }
}

/** Throws BackupError if the backup needs a migration that this release does not have. */
function assertKnown({ migrations, release }: Manifest): void {
  const known = new Set(migrationNames());
  const missing = migrations.filter((name) => !known.has(name));
  if (missing.length === 0) return;
  throw new BackupError(
    `The backup was made by release ${release} with migrations that this release ${releaseOf()} does not have ` +
      `(${missing.join(', ')}): restore it with release ${release} or a later one.`,
  );
}

/** Drops the tables. Throws BackupError if they are in use, or if they hold rows and `force` is not set. */
async function empty(session: BackupSession, force: boolean): Promise<void> {
  const [others] = await session.query<{ count: number }>(OTHER_PROCESSES);
  if (others && others.count > 0) {
    throw new BackupError(
      `${others.count} connections of Baton's processes are open to the database: stop every API and worker first.`,
    );
  }
  await session.transact('READ WRITE', async () => {
    const tables = await session.tables();
    const { kept } = partition(tables);
    const full = force ? [] : await tablesWithRows(session, kept);
    if (full.length > 0) {
      const [database] = await session.query<{ name: string }>(DATABASE_NAME);
      throw new BackupError(
        `The database "${database?.name ?? ''}" is not empty: there are rows in ${full.join(', ')}. ` +
          'Restore into an empty database, or add --force, which DELETES everything that is in this one first.',
      );
    }
    for (const { name } of tables)
      await session.query(`DROP TABLE IF EXISTS ${escapeIdentifier(name)} CASCADE`);
    for (const { name } of await session.query<{ name: string }>(ROUTINES)) {
      await session.query(`DROP ROUTINE IF EXISTS ${name} CASCADE`);
    }
    await session.query(`DROP SCHEMA IF EXISTS ${QUEUE_SCHEMA} CASCADE`);
  });
}

async function tablesWithRows(session: BackupSession, tables: readonly Table[]): Promise<string[]> {
  await session.assertSeesAll(tables);
  const full: string[] = [];
  for (const { name } of tables) {
    const rows = await session.query(`SELECT 1 FROM ${escapeIdentifier(name)} LIMIT 1`);
    if (rows.length > 0) full.push(name);
  }
  return full;
}

async function load(
  session: BackupSession,
  databaseUrl: string,
  { open, report, role }: RestoreOptions,
): Promise<Omit<Restored, 'migrated'>> {
  const parts = readArchive(open());
  const check = new ArchiveCheck();
  try {
    const first = await parts.next();
    if (!first.done) check.take(first.value);
    const { manifest } = check;
    assertKnown(manifest);
    await migrateTo(databaseUrl, manifest.migrations, role);
    report(`The tables are created: ${manifest.migrations.length} migrations.`);
    const interruptedRuns = await session.transact('READ WRITE', async () => {
      const tables = await session.tables();
      assertColumns(manifest, tables);
      await letOwnerIn(session, tables);
      const loader = new Loader(session, manifest);
      for await (const part of parts) {
        check.take(part);
        if (part.kind === 'rows') await loader.write(part.table, part.data);
      }
      await loader.end();
      await compare(session, manifest, check.finish(), report);
      await setSequences(session, manifest);
      const expired = await session.query(EXPIRE_LEASES);
      await bindOwnerAgain(session, tables);
      return expired.length;
    });
    return { manifest, interruptedRuns };
  } finally {
    await parts.return(undefined);
  }
}

/** Applies these migrations and no others, as they are in this release. */
async function migrateTo(
  databaseUrl: string,
  names: readonly string[],
  role: string | undefined,
): Promise<void> {
  const source = migrationsFolder();
  const folder = mkdtempSync(join(tmpdir(), 'baton-restore-'));
  try {
    for (const name of ['migration_lock.toml', ...names]) {
      cpSync(join(source, name), join(folder, name), { recursive: true });
    }
    await migrate(databaseUrl, { folder, role });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function assertColumns(manifest: Manifest, tables: readonly Table[]): void {
  for (const { name, columns } of manifest.tables) {
    const known = new Set(tables.find((table) => table.name === name)?.columns);
    const unknown = columns.filter((column) => !known.has(column));
    if (unknown.length > 0) {
      throw new BackupError(
        `The migrations of the backup create no ${name} with ${unknown.join(', ')}: the backed-up database ` +
          'was changed by hand. Change it back to what the migrations create, then back it up again.',
      );
    }
  }
}

/**
 * COPY does not write into a table whose row-level security binds its writer. No other session can use the
 * tables until this transaction ends.
 */
async function letOwnerIn(session: BackupSession, tables: readonly Table[]): Promise<void> {
  for (const { name } of tables) {
    await session.query(
      `ALTER TABLE ${escapeIdentifier(name)} NO FORCE ROW LEVEL SECURITY, DISABLE TRIGGER USER`,
    );
  }
}

async function bindOwnerAgain(session: BackupSession, tables: readonly Table[]): Promise<void> {
  for (const { name, isForced } of tables) {
    const force = isForced ? 'FORCE ROW LEVEL SECURITY, ' : '';
    await session.query(`ALTER TABLE ${escapeIdentifier(name)} ${force}ENABLE TRIGGER USER`);
  }
}

/** Throws BackupError unless every table equals the backup to the last byte. */
async function compare(
  session: BackupSession,
  manifest: Manifest,
  checksums: Checksums,
  report: Report,
): Promise<void> {
  for (const table of manifest.tables) {
    const stored = await digestOf(session, table);
    if (!isSame(stored, checksums[table.name])) {
      throw new BackupError(
        `The rows of ${table.name} differ from the backup after loading. Nothing was restored.`,
      );
    }
    if (table.rows > 0) report(`${table.name}: ${table.rows} rows restored and compared`);
  }
}

async function setSequences(session: BackupSession, { sequences }: Manifest): Promise<void> {
  for (const { name, lastValue, isCalled } of sequences) {
    const values = [escapeIdentifier(name), lastValue, isCalled];
    await session.query('SELECT setval($1::regclass, $2::bigint, $3)', values);
  }
}

/** Rows on their way into a table; `done` when they are in it. */
interface TableCopy {
  table: string;
  stream: Writable;
  done: Promise<void>;
}

/** Writes rows into one table after the other. */
class Loader {
  private current: TableCopy | undefined;

  constructor(
    private readonly session: BackupSession,
    private readonly manifest: Manifest,
  ) {}

  async write(table: string, data: Buffer): Promise<void> {
    if (this.current?.table !== table) await this.end();
    const { stream, done } = (this.current ??= this.begin(table));
    if (!stream.write(data)) await Promise.race([once(stream, 'drain'), done]);
  }

  /** Resolves when the rows of the current table are stored. */
  async end(): Promise<void> {
    const current = this.current;
    if (!current) return;
    this.current = undefined;
    current.stream.end();
    await current.done;
  }

  private begin(table: string): TableCopy {
    const columns = this.manifest.tables.find(({ name }) => name === table)?.columns ?? [];
    const names = columns.map(escapeIdentifier).join(', ');
    const stream: Writable = this.session.copy(
      copyFrom(`COPY ${escapeIdentifier(table)} (${names}) FROM STDIN`),
    );
    const done = finished(stream);
    // The next write, or the end, gets the error.
    done.catch(() => undefined);
    return { table, stream, done };
  }
}
