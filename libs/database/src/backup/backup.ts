import { formatBytes } from '@baton/telemetry';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Writable } from 'node:stream';
import { escapeIdentifier } from 'pg';
import { to as copyTo } from 'pg-copy-streams';
import { projectFolder } from '../connection/migrations-folder.js';
import { plainError } from '../connection/transient.js';
import { type Checksums, FORMAT_VERSION, type Manifest } from './archive.js';
import { ArchiveWriter } from './archive-writer.js';
import { type Digest, RowDigest } from './row-digest.js';
import { BackupError } from './backup-error.js';
import { BackupSession, type Table } from './backup-session.js';

/** Called with each line of progress. */
export type Report = (line: string) => void;

/** The database that is backed up or restored. */
export interface BackedUp {
  databaseUrl: string;
  /** Its key, if the scope of all tenants has one. */
  databaseSystemKey?: string | undefined;
}

/** A backup that was made. */
export interface Backup {
  manifest: Manifest;
  checksums: Checksums;
}

/** Tables whose rows are not in a backup, in addition to unlogged tables. */
const LEFT_OUT: Readonly<Record<string, string>> = {
  _prisma_migrations: 'the manifest names the migrations, and a restore applies them',
  workers: 'live processes; the processes of a restored system register themselves',
};
const UNLOGGED = 'unlogged: counters of the last seconds';

/** Exists while a migration is under way, or has stopped halfway. */
const MIGRATION_PROGRESS = '_baton_migration_progress';

const MIGRATIONS = `SELECT migration_name AS name, finished_at IS NOT NULL AS "isFinished"
  FROM _prisma_migrations WHERE rolled_back_at IS NULL ORDER BY migration_name`;
const SEQUENCES = `SELECT relname AS name FROM pg_class
  WHERE relkind = 'S' AND relnamespace = current_schema()::regnamespace ORDER BY relname`;

/**
 * Writes all rows of the database to `out`, as of one point in time, while the system runs. It checks that the role
 * sees every row, and compares the number of rows of each table with the file. Holds a few MiB in memory, whatever the
 * size of the tables.
 * @throws BackupError with the remedy, if the backup would be incomplete
 */
export async function backUp(
  { databaseUrl, databaseSystemKey }: BackedUp,
  out: Writable,
  report: Report,
): Promise<Backup> {
  const writer = new ArchiveWriter(out);
  try {
    return await BackupSession.open(
      databaseUrl,
      (session) => session.transact('READ ONLY', () => writeAll(session, writer, report)),
      databaseSystemKey,
    );
  } catch (error) {
    const reason = plainError(error);
    writer.abort(reason as Error);
    throw reason;
  }
}

/** The tables that are read, and those that are left out. */
export function partition(tables: readonly Table[]): { kept: Table[]; leftOut: Manifest['leftOut'] } {
  const reasonOf = ({ name, isUnlogged }: Table) => LEFT_OUT[name] ?? (isUnlogged ? UNLOGGED : undefined);
  return {
    kept: tables.filter((table) => reasonOf(table) === undefined),
    leftOut: tables.flatMap((table) => {
      const reason = reasonOf(table);
      return reason === undefined ? [] : [{ name: table.name, reason }];
    }),
  };
}

/** The rows of a table in COPY's text format. */
export const readRows = (session: BackupSession, { name, columns }: Pick<Table, 'name' | 'columns'>) =>
  session.copy(
    copyTo(
      `COPY (SELECT ${columns.map(escapeIdentifier).join(', ')} FROM ${escapeIdentifier(name)}) TO STDOUT`,
    ),
  ) as AsyncIterable<Buffer>;

/** The digest of a table's rows in the database. */
export async function digestOf(
  session: BackupSession,
  table: Pick<Table, 'name' | 'columns'>,
): Promise<Digest> {
  const digest = new RowDigest();
  for await (const chunk of readRows(session, table)) digest.update(chunk);
  return digest.result;
}

/** Version of this build of Baton. */
export function releaseOf(): string {
  const file = join(projectFolder(), 'package.json');
  return (JSON.parse(readFileSync(file, 'utf8')) as { version: string }).version;
}

async function writeAll(session: BackupSession, writer: ArchiveWriter, report: Report): Promise<Backup> {
  const tables = await session.tables();
  if (!tables.some(({ name }) => name === '_prisma_migrations')) {
    throw new BackupError(
      'The database is not migrated, so there is nothing to back up: check DATABASE_URL.',
    );
  }
  const { kept, leftOut } = partition(tables);
  await session.query(
    `LOCK TABLE ${kept.map(({ name }) => escapeIdentifier(name)).join(', ')} IN ACCESS SHARE MODE`,
  );
  await session.assertSeesAll(tables);
  const manifest = await describe(session, kept, leftOut);
  await writer.manifest(manifest);
  const checksums: Record<string, Digest> = {};
  for (const { name, columns, rows } of manifest.tables) {
    const digest = await writer.rows(name, readRows(session, { name, columns }));
    if (digest.rows !== rows) {
      throw new BackupError(
        `${digest.rows} rows of ${name} were read, but the table has ${rows}: this is not a valid backup.`,
      );
    }
    checksums[name] = digest;
    if (rows > 0) report(`${name}: ${rows} rows, ${formatBytes(digest.bytes)}`);
  }
  await writer.finish(checksums);
  return { manifest, checksums };
}

async function describe(
  session: BackupSession,
  kept: readonly Table[],
  leftOut: Manifest['leftOut'],
): Promise<Manifest> {
  const [server] = await session.query<{ version: string }>(
    `SELECT current_setting('server_version') AS version`,
  );
  const migrations = await migrationsOf(session, kept);
  const tables: Manifest['tables'] = [];
  for (const { name, columns } of kept) {
    const [row] = await session.query<{ rows: number }>(
      `SELECT count(*)::float8 AS rows FROM ${escapeIdentifier(name)}`,
    );
    tables.push({ name, columns, rows: row?.rows ?? 0 });
  }
  return {
    format: 'baton-backup',
    version: FORMAT_VERSION,
    release: releaseOf(),
    createdAt: new Date().toISOString(),
    postgres: server?.version ?? '',
    migrations,
    tables,
    sequences: await sequencesOf(session),
    leftOut,
    masterKeyIds: await masterKeyIdsOf(session, kept),
  };
}

/** Throws BackupError while one is under way: tables may then be half of the old kind and half of the new one. */
async function migrationsOf(session: BackupSession, kept: readonly Table[]): Promise<string[]> {
  const migrations = await session.query<{ name: string; isFinished: boolean }>(MIGRATIONS);
  const unfinished = migrations.find(({ isFinished }) => !isFinished);
  if (unfinished || kept.some(({ name }) => name === MIGRATION_PROGRESS)) {
    throw new BackupError(
      'A migration is under way or has stopped halfway: wait for it, or run `npm run migrate`.',
    );
  }
  return migrations.map(({ name }) => name);
}

/** Tables with values that the master key has encrypted. */
const SEALED = ['secrets', 'push_configs', 'webhooks', 'oauth_clients', 'oauth_connections'];

async function masterKeyIdsOf(session: BackupSession, kept: readonly Table[]): Promise<string[]> {
  // The first releases had none of them.
  const sealed = SEALED.filter((table) => kept.some(({ name }) => name === table));
  if (sealed.length === 0) return [];
  const keys = await session.query<{ id: string }>(
    `SELECT key_id AS id FROM (${sealed.map((table) => `SELECT key_id FROM ${table}`).join(' UNION ')}) AS k
     WHERE key_id IS NOT NULL ORDER BY key_id`,
  );
  return keys.map(({ id }) => id);
}

async function sequencesOf(session: BackupSession): Promise<Manifest['sequences']> {
  const names = await session.query<{ name: string }>(SEQUENCES);
  const sequences: Manifest['sequences'] = [];
  for (const { name } of names) {
    const [row] = await session.query<{ lastValue: string; isCalled: boolean }>(
      `SELECT last_value::text AS "lastValue", is_called AS "isCalled" FROM ${escapeIdentifier(name)}`,
    );
    if (row) sequences.push({ name, ...row });
  }
  return sequences;
}
