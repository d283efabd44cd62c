import { once } from 'node:events';
import type { Writable } from 'node:stream';
import { finished } from 'node:stream/promises';
import { escapeIdentifier, escapeLiteral } from 'pg';
import { to as copyTo } from 'pg-copy-streams';
import { tenantScope } from '../connection/row-security.js';
import { plainError } from '../connection/transient.js';
import { BackupError } from './backup-error.js';
import { releaseOf } from './backup.js';
import { BackupSession } from './backup-session.js';
import {
  type BackupColumn,
  columnsOf,
  EXPORT_VERSION,
  EXPORTED,
  type ExportedTable,
} from './tenant-tables.js';

/** A tenant that was exported. */
export interface TenantExport {
  slug: string;
  /** Lines by their kind. */
  records: Record<string, number>;
  /** Names of the secrets that the tenant has. Their values are not in the file. */
  secrets: string[];
  /** Tasks that are left out, because their runs were not over. */
  runningTasks: number;
}

const TENANT = `
SELECT slug, default_agent AS "defaultAgent", index_model AS "indexModel", index_model_url AS "indexModelUrl", limits, predates_retention AS "predatesRetention",
  egress_allow AS "egressAllow", egress_deny AS "egressDeny"
FROM tenants WHERE id = $1`;
const SECRETS = 'SELECT name FROM secrets WHERE tenant_id = $1 ORDER BY name';
const RUNNING = `SELECT count(*)::int AS count FROM runs
  WHERE tenant_id = $1 AND state IN ('queued', 'running', 'suspended')`;

/** Characters that are in no JSON text: with them COPY writes each line as it is. */
const RAW = `(FORMAT csv, DELIMITER E'\\x02', QUOTE E'\\x01')`;
const LINE_FEED = 10;

/**
 * Writes everything of a tenant that can move, as of one point in time, while the system runs: agents with their versions,
 * schedules, tasks with their messages, logs and journals, and the ids that callers gave them. No token and no secret is in
 * it. Holds a few rows in memory, whatever the size of the tables.
 * @param options.skipRunning leave out tasks whose runs are not over; otherwise such a task refuses the export
 * @throws BackupError with the remedy
 */
export async function exportTenant(
  databaseUrl: string,
  tenantId: string,
  out: Writable,
  { skipRunning }: { skipRunning: boolean },
): Promise<TenantExport> {
  const scope = tenantScope(tenantId);
  const writer = new LineWriter(out);
  try {
    return await BackupSession.open(databaseUrl, (session) =>
      session.transact('READ ONLY', () => writeAll(session, tenantId, writer, skipRunning), scope),
    );
  } catch (error) {
    throw plainError(error);
  }
}

async function writeAll(
  session: BackupSession,
  tenantId: string,
  writer: LineWriter,
  skipRunning: boolean,
): Promise<TenantExport> {
  const [tenant] = await session.query<{ slug: string }>(TENANT, [tenantId]);
  if (!tenant) throw new BackupError('There is no such tenant.');
  const [running = { count: 0 }] = await session.query<{ count: number }>(RUNNING, [tenantId]);
  if (running.count > 0 && !skipRunning) {
    throw new BackupError(
      `${running.count} tasks of "${tenant.slug}" are running or queued, and a run cannot move: suspend the tenant with ` +
        '--stop, or wait for them, or leave them out with --skip-running.',
    );
  }
  const secrets = (await session.query<{ name: string }>(SECRETS, [tenantId])).map(({ name }) => name);
  const header = { kind: 'baton-tenant', version: EXPORT_VERSION, release: releaseOf() };
  await writer.line({ ...header, exportedAt: new Date().toISOString(), tenant, secrets });
  const records: Record<string, number> = {};
  for (const exported of EXPORTED) {
    const query = linesOf(exported, await columnsOf(session, exported.table), tenantId);
    records[exported.kind] = await writer.copy(
      session.copy(copyTo(`COPY (${query}) TO STDOUT WITH ${RAW}`)) as AsyncIterable<Buffer>,
    );
  }
  await writer.line({ kind: 'end', records, runningTasks: running.count });
  await writer.end();
  return { slug: tenant.slug, records, secrets, runningTasks: running.count };
}

/** The rows of a table as lines. Numbers of 64 bits are texts, because many readers of JSON would round them. */
function linesOf(exported: ExportedTable, columns: readonly BackupColumn[], tenantId: string): string {
  const { kind, table, order, where, without = [] } = exported;
  const moved = columns.filter(({ name }) => !without.includes(name));
  const values = moved.map(({ name, type }) => {
    const column = escapeIdentifier(name);
    return type === 'bigint' ? `r.${column}::text AS ${column}` : `r.${column}`;
  });
  // A line break in JSON is white space.
  return `SELECT translate(row_to_json(line)::text, E'\\n\\r', '  ') FROM (
    SELECT ${escapeLiteral(kind)} AS kind, ${values.join(', ')} FROM ${escapeIdentifier(table)} AS r
    WHERE r.tenant_id = ${escapeLiteral(tenantId)} AND ${where} ORDER BY ${order}) AS line`;
}

/** Writes lines as fast as they are taken. */
class LineWriter {
  private error: Error | undefined;

  constructor(private readonly out: Writable) {
    out.on('error', (error) => (this.error ??= error));
  }

  async line(value: object): Promise<void> {
    await this.write(Buffer.from(`${JSON.stringify(value)}\n`));
  }

  /** @returns the number of lines */
  async copy(chunks: AsyncIterable<Buffer>): Promise<number> {
    let lines = 0;
    for await (const chunk of chunks) {
      for (let at = chunk.indexOf(LINE_FEED); at !== -1; at = chunk.indexOf(LINE_FEED, at + 1)) lines += 1;
      await this.write(chunk);
    }
    return lines;
  }

  /** Resolves when everything has reached the output. */
  async end(): Promise<void> {
    const taken = finished(this.out, { readable: false });
    this.out.end();
    await taken;
  }

  private async write(chunk: Buffer): Promise<void> {
    if (this.error) throw this.error;
    if (this.out.destroyed) throw new BackupError('The reader of the export has left.');
    if (this.out.write(chunk)) return;
    await Promise.race([once(this.out, 'drain'), once(this.out, 'close')]);
  }
}
