import { Client } from 'pg';
import { createDatabase, type TestDatabase } from '../../../../test/support/index.js';

// docs/operating/capacity.md: tenants can be put on several databases, or their rows on several nodes, because no key and no
// reference goes across tenants. Everything here is derived from the catalog of the database, so a table that a later
// migration makes is tested without a word here.

/** Unique keys without the tenant: each finds the tenant of a caller that has not named one. */
const FIND_THE_TENANT: Readonly<Record<string, string>> = {
  'api_tokens (hash)': 'a token says whose it is',
  'api_tokens (previous_hash)': 'the token before the last rotation does, too',
  'hosts (host)': 'a host name says whose it is',
  'issuers (issuer, audience, tenant_value)': 'the claims of a user say whose user it is',
  'tenants (slug)': 'operators name a tenant by it',
};

/** Name of the column that holds the tenant. */
const TENANT = `CASE c.relname WHEN 'tenants' THEN 'id' ELSE 'tenant_id' END`;
/** Tables of tenants. */
const TABLES = `SELECT c.oid, c.relname::text AS name, ${TENANT} AS tenant FROM pg_class c
  WHERE c.relkind IN ('r', 'p') AND c.relnamespace = 'public'::regnamespace AND EXISTS (
    SELECT FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attname = ${TENANT} AND NOT a.attisdropped)
    AND (c.relname = 'tenants' OR ${TENANT} = 'tenant_id')`;

let database: TestDatabase;
let client: Client;

beforeAll(async () => {
  database = await createDatabase();
  client = new Client({ connectionString: database.url });
  await client.connect();
});

afterAll(async () => {
  await client.end();
  await database.drop();
});

const namesOf = async (text: string): Promise<string[]> =>
  (await client.query<{ name: string }>(text)).rows.map(({ name }) => name);

/** The unique keys without the tenant, such as `hosts (host)`. */
const keysWithoutTenant = () =>
  namesOf(`SELECT t.name || ' (' || string_agg(a.attname, ', ' ORDER BY k.position) || ')' AS name
    FROM (${TABLES}) t JOIN pg_index i ON i.indrelid = t.oid AND i.indisunique,
      unnest(i.indkey::int2[]) WITH ORDINALITY AS k(number, position)
      JOIN pg_attribute a ON true
    WHERE a.attrelid = i.indrelid AND a.attnum = k.number AND k.position <= i.indnkeyatts
    GROUP BY t.name, t.tenant, i.indexrelid HAVING NOT bool_or(a.attname = t.tenant) ORDER BY 1`);

/** The references between tables of tenants that do not say that both rows belong to one tenant. */
const referencesAcrossTenants = () =>
  namesOf(`SELECT f.conname::text AS name FROM pg_constraint f
    JOIN (${TABLES}) t ON t.oid = f.conrelid JOIN (${TABLES}) r ON r.oid = f.confrelid
    WHERE f.contype = 'f' AND NOT EXISTS (
      SELECT FROM unnest(f.conkey, f.confkey) AS k(own, other)
        JOIN pg_attribute a ON a.attrelid = f.conrelid AND a.attnum = k.own AND a.attname = t.tenant
        JOIN pg_attribute b ON b.attrelid = f.confrelid AND b.attnum = k.other AND b.attname = r.tenant)
    ORDER BY 1`);

it('every table of tenants has a primary key', async () => {
  const without = await namesOf(`SELECT t.name FROM (${TABLES}) t
    WHERE NOT EXISTS (SELECT FROM pg_index i WHERE i.indrelid = t.oid AND i.indisprimary) ORDER BY 1`);
  expect(without).toEqual([]);
  expect((await namesOf(TABLES)).length).toBeGreaterThanOrEqual(25);
});

it('the tenant is in every unique key, but for those that find it', async () => {
  expect(await keysWithoutTenant()).toEqual(Object.keys(FIND_THE_TENANT));
});

it('every reference between tables of tenants stays within one tenant', async () => {
  expect(await referencesAcrossTenants()).toEqual([]);
});

it('sees a key and a reference across tenants', async () => {
  await client.query('BEGIN');
  try {
    await client.query(`CREATE TABLE notes (id uuid PRIMARY KEY, tenant_id uuid, UNIQUE (tenant_id, id));
      CREATE TABLE remarks (tenant_id uuid, id uuid PRIMARY KEY, note uuid CONSTRAINT loose REFERENCES notes (id))`);
    expect(await keysWithoutTenant()).toEqual(expect.arrayContaining(['notes (id)', 'remarks (id)']));
    expect(await referencesAcrossTenants()).toEqual(['loose']);
  } finally {
    await client.query('ROLLBACK');
  }
});
