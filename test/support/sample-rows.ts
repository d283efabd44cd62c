import { randomUUID } from 'node:crypto';
import type { Client } from 'pg';

// Rows for every table that there is, derived from the catalog of the database.

interface Column {
  name: string;
  type: string;
  isArray: boolean;
}

/** Lets sample rows in: what a row must satisfy besides its types is tested elsewhere. */
export async function dropConditions(client: Client): Promise<void> {
  const { rows } = await client.query<{ drop: string }>(
    `SELECT format('ALTER TABLE %s DROP CONSTRAINT IF EXISTS %I CASCADE', conrelid::regclass, conname) AS drop
     FROM pg_constraint WHERE contype IN ('c', 'f') AND connamespace = 'public'::regnamespace`,
  );
  for (const { drop } of rows) await client.query(drop);
}

/** The tables with rows of tenants, without `tenants` itself. */
export async function tenantTables(client: Client): Promise<string[]> {
  const { rows } = await client.query<{ name: string }>(
    `SELECT c.relname AS name FROM pg_class c
     JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'tenant_id' AND NOT a.attisdropped
     WHERE c.relkind IN ('r', 'p') AND c.relnamespace = 'public'::regnamespace ORDER BY 1`,
  );
  return rows.map(({ name }) => name);
}

/** The columns that a row must give a value to. */
async function requiredColumns(client: Client, table: string): Promise<Column[]> {
  const { rows } = await client.query<Column>(
    `SELECT column_name AS name, regexp_replace(udt_name, '^_', '') AS type, data_type = 'ARRAY' AS "isArray"
     FROM information_schema.columns
     WHERE table_schema = 'public' AND table_name = $1 AND is_nullable = 'NO' AND is_generated = 'NEVER'
       AND is_identity = 'NO'`,
    [table],
  );
  return rows;
}

/** A value of each type that a column has, as SQL; no two calls give the same text, uuid, bytes or number. */
const SAMPLES: Readonly<Record<string, () => string>> = {
  uuid: () => `'${randomUUID()}'`,
  text: () => `'${randomUUID()}'`,
  varchar: () => `'${randomUUID()}'`,
  bytea: () => `'${randomUUID()}'::bytea`,
  int2: () => String(Math.ceil(Math.random() * 30_000)),
  int4: () => String(Math.ceil(Math.random() * 1e9)),
  int8: () => String(Math.ceil(Math.random() * 1e12)),
  float8: () => String(Math.random()),
  bool: () => 'true',
  json: () => `'{}'`,
  jsonb: () => `'{}'`,
  timestamptz: () => 'now()',
  date: () => 'now()',
  interval: () => `'1 s'`,
};

function sample({ name, type, isArray }: Column): string {
  if (isArray) return `'{}'`;
  const make = SAMPLES[type];
  if (!make) throw new Error(`Say in SAMPLES what a ${type} may be: the column ${name} is one.`);
  return make();
}

/** An INSERT of a row of that tenant. */
export async function insertFor(
  client: Client,
  { name, tenantColumn }: { name: string; tenantColumn: string | null },
  tenantId: string,
): Promise<string> {
  const columns = await requiredColumns(client, name);
  const values = columns.map((column) => (column.name === tenantColumn ? `'${tenantId}'` : sample(column)));
  return `INSERT INTO ${name} (${columns.map((column) => column.name).join(', ')}) VALUES (${values.join(', ')})`;
}
