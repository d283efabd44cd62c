import { sessionConfig } from '@baton/postgres';
import { type Client, escapeIdentifier } from 'pg';
import { LOG_TABLE } from '../log/log-table.js';
import { inSession } from './in-session.js';
import { type MigrationOptions, MigrationSession } from './migration-session.js';
import { StepLines } from './step-lines.js';

/** The tables whose rows hold what callers, agents and models write. */
const TABLES = [
  'tasks',
  LOG_TABLE,
  'task_messages',
  'turn_journal',
  'call_records',
  'context_state',
  'console_lines',
];

const HAS_LZ4 = `SELECT 'lz4' = ANY(enumvals) AS "hasLz4" FROM pg_settings WHERE name = 'default_toast_compression'`;

/** Columns that Postgres compresses, and not with LZ4. */
const OTHERS = `SELECT c.relname AS "table", array_agg(a.attname::text ORDER BY a.attnum) AS columns
  FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
  WHERE c.relnamespace = 'public'::regnamespace AND c.relname = ANY($1)
    AND a.attnum > 0 AND NOT a.attisdropped AND a.attstorage IN ('x', 'm') AND a.attcompression <> 'l'
  GROUP BY c.relname ORDER BY c.relname`;

interface TableColumns {
  table: string;
  columns: string[];
}

/**
 * Has Postgres compress long texts with LZ4 from now on: with its default, pglz, half of its CPU time is the compression of messages
 * and events (docs/inside/adr/0094-lz4-for-long-texts.md). Rows that are there stay as they are. A Postgres that was built without LZ4
 * keeps its default.
 * @throws an error that names the session that holds a lock for longer than `lockPatienceMs`
 */
export async function compressTexts(databaseUrl: string, options: MigrationOptions): Promise<void> {
  await inSession(sessionConfig(databaseUrl), async (client) => {
    const tables = await othersOf(client);
    if (tables.length === 0) return;
    await inSession(sessionConfig(databaseUrl), async (watch) => {
      const session = new MigrationSession(client, watch, options);
      const lines = new StepLines('compression of long texts', options.report);
      for (const each of tables)
        await session.transact(lines, options.lockTimeoutMs, [{ text: setLz4(each) }]);
    });
  });
}

async function othersOf(client: Client): Promise<TableColumns[]> {
  const [server] = (await client.query<{ hasLz4: boolean }>(HAS_LZ4)).rows;
  return server?.hasLz4 ? (await client.query<TableColumns>(OTHERS, [TABLES])).rows : [];
}

const setLz4 = ({ table, columns }: TableColumns): string =>
  `ALTER TABLE ${escapeIdentifier(table)} ${columns
    .map((column) => `ALTER COLUMN ${escapeIdentifier(column)} SET COMPRESSION lz4`)
    .join(', ')}`;
