import { parseEgressPattern } from '@baton/config';
import { randomUUID } from 'node:crypto';
import { escapeIdentifier } from 'pg';
import { z } from 'zod';
import { type Actor } from '../audit/audit-records.js';
import { auditValues, RECORD } from '../audit/audit-sql.js';
import { tenantScope } from '../connection/row-security.js';
import { plainError } from '../connection/transient.js';
import { type Inputs, one, statement } from '../sql/statement.js';
import { BackupError } from './backup-error.js';
import { BackupSession } from './backup-session.js';
import { type BackupColumn, columnsOf, EXPORT_VERSION, EXPORTED } from './tenant-tables.js';

/** A tenant that was imported. */
export interface TenantImport {
  id: string;
  slug: string;
  /** Rows by the kind of their lines. */
  records: Record<string, number>;
  /** Names of the secrets that the exported tenant had, and this one does not have yet. */
  secrets: string[];
  /** Schedules. They are paused. */
  pausedSchedules: number;
}

const headerSchema = z.object({
  kind: z.literal('baton-tenant'),
  version: z.number().int(),
  release: z.string(),
  tenant: z.object({
    defaultAgent: z.string(),
    indexModel: z.string().nullable(),
    indexModelUrl: z.string().nullable(),
    limits: z.record(z.string(), z.number().nullable()),
    // A tenant of an earlier release keeps its ended tasks here, too.
    predatesRetention: z.boolean().default(true),
    // Exports of earlier releases have no lists.
    egressAllow: z.array(z.string()).default([]),
    egressDeny: z.array(z.string()).default([]),
  }),
  secrets: z.array(z.string()),
});
const endSchema = z.object({ kind: z.literal('end'), records: z.record(z.string(), z.number()) });
type Line = Record<string, unknown>;

/** A line is one row. The largest row has an event of the largest size, as JSON. */
const MAX_LINE_BYTES = 256 * 1024 * 1024;
const LINE_FEED = 10;
/** Maximum number of rows of one statement. Postgres takes 65,535 parameters, and a row has some dozen. */
const MAX_ROWS = 200;
/** Size at which a statement is sent, so that large rows do not add up in memory. */
const MAX_BATCH_BYTES = 1024 * 1024;

/** The tenant as its export describes it. */
interface NewTenant {
  id: string;
  slug: string;
  tenant: z.output<typeof headerSchema>['tenant'];
}

const TENANT = {
  id: ['uuid', ({ id }) => id],
  slug: ['text', ({ slug }) => slug],
  default_agent: ['text', ({ tenant }) => tenant.defaultAgent],
  index_model: ['text', ({ tenant }) => tenant.indexModel],
  index_model_url: ['text', ({ tenant }) => tenant.indexModelUrl],
  limits: ['json', ({ tenant }) => JSON.stringify(tenant.limits)],
  egress_allow: ['text[]', ({ tenant }) => tenant.egressAllow],
  egress_deny: ['text[]', ({ tenant }) => tenant.egressDeny],
  predates_retention: ['boolean', ({ tenant }) => tenant.predatesRetention],
} satisfies Inputs<NewTenant>;

const CREATE_TENANT = statement(
  undefined,
  { tenant: one(TENANT) },
  ({ tenant }) => `
INSERT INTO tenants (${Object.keys(TENANT).join(', ')})
VALUES (${Object.values(tenant).join(', ')})
ON CONFLICT (slug) DO NOTHING RETURNING id`,
);

/** The queue ticks by the ids of schedules, which two tenants must not share. `resume` sets the next time. */
const PAUSE_SCHEDULES = `
UPDATE schedules SET id = gen_random_uuid(), paused = true, next_at = NULL, wake_at = NULL, pending_at = NULL,
  is_waiting = false WHERE tenant_id = $1 RETURNING id`;

/**
 * Makes a tenant of the export of another one, in one transaction: all of it is there, or nothing. The ids of agents and
 * tasks stay. Schedules are paused. Holds a few rows in memory, whatever the size of the file.
 * @param slug of the new tenant
 * @throws BackupError with what to do
 */
export async function importTenant(
  databaseUrl: string,
  slug: string,
  input: AsyncIterable<Uint8Array>,
  by: Actor,
): Promise<TenantImport> {
  const id = randomUUID();
  try {
    return await BackupSession.open(databaseUrl, (session) =>
      session.transact('READ WRITE', () => load(session, { id, slug, by }, input), tenantScope(id)),
    );
  } catch (error) {
    throw explain(error);
  }
}

async function load(
  session: BackupSession,
  { id, slug, by }: { id: string; slug: string; by: Actor },
  input: AsyncIterable<Uint8Array>,
): Promise<TenantImport> {
  const lines = readLines(input);
  const first = await lines.next();
  const header = headerSchema.safeParse(first.value);
  if (first.done || !header.success) {
    throw new BackupError('This is not the export of a tenant: it does not begin with its header.');
  }
  const { version, release, tenant, secrets } = header.data;
  if (version > EXPORT_VERSION) throw newer(release);
  const lists = [tenant.egressAllow, tenant.egressDeny];
  // A pattern that is not understood must not get lost, because a list restricts.
  if (!lists.flat().every((pattern) => parseEgressPattern(pattern))) throw newer(release);
  const values = CREATE_TENANT.values({ tenant: { id, slug, tenant } });
  const created = await session.query(CREATE_TENANT.text, [...values]);
  if (created.length === 0)
    throw new BackupError(`The tenant "${slug}" already exists: choose another slug.`);
  const records: Record<string, number> = {};
  let writer: RowWriter | undefined;
  for await (const line of lines) {
    if (line.kind === 'end') {
      await writer?.flush();
      assertComplete(endSchema.parse(line).records, records);
      const paused = await session.query(PAUSE_SCHEDULES, [id]);
      const target = { kind: 'tenant', name: slug } as const;
      await session.query(RECORD.text, [
        ...auditValues(id, { action: 'tenant.import', target, by, detail: { release, records } }),
      ]);
      return { id, slug, records, secrets, pausedSchedules: paused.length };
    }
    if (!writer || writer.kind !== line.kind) {
      await writer?.flush();
      writer = await RowWriter.for(session, id, line.kind, release);
    }
    await writer.add(line);
    records[writer.kind] = (records[writer.kind] ?? 0) + 1;
  }
  throw new BackupError('The export is incomplete: its end is missing.');
}

/** Writes the rows of one table, a few at a time. */
class RowWriter {
  private rows: unknown[][] = [];
  private bytes = 0;

  private constructor(
    private readonly session: BackupSession,
    private readonly tenantId: string,
    readonly kind: string,
    private readonly table: string,
    private readonly columns: readonly BackupColumn[],
    private readonly release: string,
  ) {}

  static async for(
    session: BackupSession,
    tenantId: string,
    wanted: unknown,
    release: string,
  ): Promise<RowWriter> {
    const exported = EXPORTED.find(({ kind }) => kind === wanted);
    if (!exported) throw newer(release);
    const { kind, table } = exported;
    return new RowWriter(session, tenantId, kind, table, await columnsOf(session, table), release);
  }

  async add({ kind: _, ...row }: Line): Promise<void> {
    const unknown = Object.keys(row).find((name) => !this.columns.some((column) => column.name === name));
    if (unknown !== undefined) throw newer(this.release);
    const values = this.columns.map((column) => valueOf(column, row[column.name]));
    this.rows.push(values);
    for (const value of values) this.bytes += typeof value === 'string' ? value.length : 8;
    if (this.rows.length >= MAX_ROWS || this.bytes >= MAX_BATCH_BYTES) await this.flush();
  }

  async flush(): Promise<void> {
    const { rows, columns, tenantId } = this;
    if (rows.length === 0) return;
    this.rows = [];
    this.bytes = 0;
    // A column that an older release did not have gets its default.
    const present = columns.flatMap((column, index) =>
      rows.some((row) => row[index] !== undefined) ? [{ ...column, index }] : [],
    );
    const values: unknown[] = [tenantId];
    const tuples = rows.map((row) => {
      const parameters = present.map(({ type, index }) => {
        values.push(row[index] ?? null);
        return `$${values.length}::${type}`;
      });
      return `($1::uuid, ${parameters.join(', ')})`;
    });
    const names = present.map(({ name }) => escapeIdentifier(name)).join(', ');
    await this.session.query(
      `INSERT INTO ${escapeIdentifier(this.table)} (tenant_id, ${names}) VALUES ${tuples.join(', ')}`,
      values,
    );
  }
}

/** As a parameter of a statement. Undefined: the row does not have it. */
function valueOf({ type, isRequired }: BackupColumn, value: unknown): unknown {
  if (value === undefined) return undefined;
  if (type === 'json' || type === 'jsonb')
    return value === null && !isRequired ? null : JSON.stringify(value);
  if (typeof value === 'string' || value === null || Array.isArray(value)) return value;
  return JSON.stringify(value);
}

async function* readLines(input: AsyncIterable<Uint8Array>): AsyncGenerator<Line> {
  let number = 0;
  for await (const text of splitLines(input)) {
    number += 1;
    if (text.trim() === '') continue;
    const line = parse(text);
    if (!line) throw new BackupError(`Line ${number} of the export is not a JSON object.`);
    yield line;
  }
}

/** Only a line feed ends a line: Node's readline also ends a line at U+2028, which JSON may contain. */
async function* splitLines(input: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  let open: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of input) {
    let start = 0;
    for (let end = chunk.indexOf(LINE_FEED); end !== -1; end = chunk.indexOf(LINE_FEED, start)) {
      open.push(chunk.subarray(start, end));
      yield Buffer.concat(open).toString();
      [open, length, start] = [[], 0, end + 1];
    }
    open.push(chunk.subarray(start));
    length += chunk.length - start;
    if (length > MAX_LINE_BYTES)
      throw new BackupError('This is not the export of a tenant: a line is too long.');
  }
  yield Buffer.concat(open).toString();
}

function parse(text: string): Line | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Line) : undefined;
  } catch {
    return undefined;
  }
}

function assertComplete(expected: Record<string, number>, found: Record<string, number>): void {
  for (const kind of new Set([...Object.keys(expected), ...Object.keys(found)])) {
    const [wanted = 0, rows = 0] = [expected[kind], found[kind]];
    if (wanted !== rows) {
      throw new BackupError(
        `The export is incomplete: it has ${rows} lines of the kind ${kind} instead of ${wanted}.`,
      );
    }
  }
}

const newer = (release: string): BackupError =>
  new BackupError(
    `The export was made by release ${release} in a newer format: import it with that release.`,
  );

/** Postgres' error for a row that was changed by hand. */
function explain(error: unknown): unknown {
  const { code, message } = error as { code?: unknown; message?: string };
  if (typeof code === 'string' && /^(22|23|42501)/.test(code)) {
    return new BackupError(`A row of the export does not fit: ${message ?? code}.`, { cause: error });
  }
  return plainError(error);
}
