import { randomUUID } from 'node:crypto';
import { Client } from 'pg';
import { createMessaging } from '@baton/messaging';
import { Logger } from '@baton/telemetry';
import { createDatabase, type TestDatabase } from '../../../../test/support/index.js';
import { dropConditions, insertFor } from '../../../../test/support/sample-rows.js';
import { Database } from './database.js';

// Everything here is derived from the catalog of the database: a table that a later migration makes is tested
// without a word here, and fails until it has its policy.

/** Tables that belong to no tenant, and why each is open to every scope. */
const WITHOUT_TENANT: Readonly<Record<string, string>> = {
  'public._prisma_migrations': 'which migrations were applied',
  'public.agent_archives': 'the code of pinned agents, which only the scope system sees',
  'public.installation': 'facts about the whole installation, which only the scope system sees',
  'public.installed_agents': "the operator's agents, for all tenants or for those that the row names",
  'public.operator_tokens': 'tokens of operators, which only the scope system sees',
  'public.rate_counters': 'numbers of the last second, by a key; only the messaging connections use them',
  'public.workers': 'the worker processes, which only the scope system sees',
};

/** BullMQ's own tables: delivery only. They hold ids of runs. A tenant cannot read a run by its id alone. */
const QUEUE_SCHEMA = 'bullmq';

/** The one condition there is: the row's own tenant, or the scope `system`, which asks for a key: system-key.int-spec.ts. */
const conditionFor = (others: string): string => `
CASE current_setting('baton.tenant'::text, true)
    WHEN 'system'::text THEN ( SELECT system_scope_granted() AS system_scope_granted)
    ELSE ${others}
END`;
const OWN = (column: string): string =>
  `(${column} = ( SELECT (current_setting('baton.tenant'::text, true))::uuid AS current_setting
      WHERE (length(current_setting('baton.tenant'::text, true)) = 36)))`;
/** Tables without a tenant that only the scope `system` sees. */
const SYSTEM_ONLY = ['installation', 'operator_tokens', 'workers'];

interface Table {
  name: string;
  /** The column that holds the tenant: tenant_id, or id in `tenants`; null = none. */
  tenantColumn: string | null;
}

let testDatabase: TestDatabase;
let database: Database;
let client: Client;

beforeAll(async () => {
  testDatabase = await createDatabase();
  // The Postgres driver makes its tables when it starts.
  const messaging = createMessaging({ databaseUrl: testDatabase.url, log: Logger.silent() });
  await messaging.start(10_000);
  await messaging.close();
  database = new Database({ url: testDatabase.url, poolSize: 2 });
  client = new Client({ connectionString: testDatabase.url });
  await client.connect();
  await dropConditions(client);
  // The audit log refuses changes by all tenants: audit.int-spec.ts.
  await client.query('ALTER TABLE audit_records DISABLE TRIGGER USER');
});

afterAll(async () => {
  await client.end();
  await database.close();
  await testDatabase.drop();
});

async function tables(): Promise<Table[]> {
  const { rows } = await client.query<Table>(
    `SELECT CASE n.nspname WHEN 'public' THEN c.relname::text ELSE n.nspname || '.' || c.relname END AS name,
       CASE c.relname WHEN 'tenants' THEN 'id' ELSE a.attname END AS "tenantColumn"
     FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
     LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'tenant_id' AND NOT a.attisdropped
     WHERE c.relkind IN ('r', 'p') AND n.nspname NOT IN ('pg_catalog', 'information_schema', $1)
     ORDER BY 1`,
    [QUEUE_SCHEMA],
  );
  return rows;
}

async function tenantTables(): Promise<(Table & { tenantColumn: string })[]> {
  const all = await tables();
  return all.flatMap(({ name, tenantColumn }) => (tenantColumn === null ? [] : [{ name, tenantColumn }]));
}

const asTenant = (tenantId: string, text: string): Promise<object[]> =>
  database.tenantQuery(tenantId, { text }, []);

it('every table belongs to a tenant, or is known to belong to none', async () => {
  const without = (await tables()).filter(({ tenantColumn }) => tenantColumn === null);
  expect(without.map(({ name }) => `public.${name}`)).toEqual(Object.keys(WITHOUT_TENANT));
  expect((await tenantTables()).length).toBeGreaterThanOrEqual(9);
});

it('nothing goes around the tables: no view, no copy, and of functions with the rights of their maker those that delete audit records', async () => {
  const { rows } = await client.query(
    `SELECT relname AS name FROM pg_class
     WHERE relkind IN ('v', 'm', 'f') AND relnamespace NOT IN ('pg_catalog'::regnamespace, 'information_schema'::regnamespace)
     UNION ALL SELECT proname FROM pg_proc WHERE prosecdef AND pronamespace = 'public'::regnamespace ORDER BY 1`,
  );
  // They return a number, and the policies bind their owner as well: audit-guard.int-spec.ts.
  expect(rows).toEqual([{ name: 'delete_audit_records_of' }, { name: 'delete_old_audit_records' }]);
});

it('every table of tenants has and forces one policy, for every command and every role', async () => {
  const conditions = [
    ...(await tenantTables()).map(({ name, tenantColumn }) => [name, OWN(tenantColumn)] as const),
    ...SYSTEM_ONLY.map((name) => [name, 'false'] as const),
  ];
  for (const [name, others] of conditions) {
    const { rows } = await client.query(
      `SELECT c.relrowsecurity AS enabled, c.relforcerowsecurity AS forced, p.permissive, p.roles::text, p.cmd,
         p.qual, coalesce(p.with_check, p.qual) AS check
       FROM pg_class c LEFT JOIN pg_policies p ON p.tablename = c.relname AND p.schemaname = 'public'
       WHERE c.oid = $1::regclass`,
      [name],
    );
    const condition = conditionFor(others);
    expect([name, rows]).toEqual([
      name,
      [
        {
          enabled: true,
          forced: true,
          permissive: 'PERMISSIVE',
          roles: '{public}',
          cmd: 'ALL',
          qual: condition,
          check: condition,
        },
      ],
    ]);
  }
});

it('a tenant sees, changes and removes its own rows only, and makes none of another, in every table', async () => {
  const [mine, theirs] = [randomUUID(), randomUUID()];
  for (const table of await tenantTables()) {
    const { name, tenantColumn } = table;
    for (const tenant of [mine, theirs]) await asTenant(tenant, await insertFor(client, table, tenant));
    const owners = (text: string) => asTenant(mine, `${text} RETURNING ${tenantColumn} AS tenant`);
    const ofTheirs = `WHERE ${tenantColumn} = '${theirs}'`;
    const own = [{ tenant: mine }];
    const keep = `UPDATE ${name} SET ${tenantColumn} = ${tenantColumn}`;
    const seen = {
      selected: await asTenant(mine, `SELECT ${tenantColumn} AS tenant FROM ${name}`),
      theirs: await asTenant(mine, `SELECT 1 FROM ${name} ${ofTheirs}`),
      updated: await owners(keep),
      theirsUpdated: await owners(`${keep} ${ofTheirs}`),
      theirsDeleted: await owners(`DELETE FROM ${name} ${ofTheirs}`),
    };
    const none = { theirs: [], theirsUpdated: [], theirsDeleted: [] };
    expect([name, seen]).toEqual([name, { selected: own, updated: own, ...none }]);
    const refusal = 'row-level security';
    await expect(asTenant(mine, await insertFor(client, table, theirs))).rejects.toThrow(refusal);
    await expect(asTenant(mine, `UPDATE ${name} SET ${tenantColumn} = '${theirs}'`)).rejects.toThrow(refusal);
    expect([name, await owners(`DELETE FROM ${name}`)]).toEqual([name, own]);
    const left = await asTenant(theirs, `SELECT ${tenantColumn} AS tenant FROM ${name}`);
    expect([name, left]).toEqual([name, [{ tenant: theirs }]]);
  }
});

it('a connection that names no tenant, or nonsense, sees nothing and makes nothing', async () => {
  for (const scope of [`RESET baton.tenant`, `SET baton.tenant = ''`, `SET baton.tenant = 'SYSTEM'`]) {
    await client.query(scope);
    for (const table of await tenantTables()) {
      const tenantId = randomUUID();
      await asTenant(tenantId, await insertFor(client, table, tenantId));
      const { rowCount } = await client.query(`SELECT 1 FROM ${table.name}`);
      expect([table.name, rowCount]).toEqual([table.name, 0]);
      const insert = client.query(await insertFor(client, table, randomUUID()));
      await expect(insert).rejects.toThrow('row-level security');
    }
  }
  await client.query('RESET baton.tenant');
});

it('a table that does not bind the role ends the connection of API and worker', async () => {
  await client.query('ALTER TABLE task_events NO FORCE ROW LEVEL SECURITY');
  await client.query('CREATE TABLE forgotten (tenant_id uuid PRIMARY KEY)');
  const refused = new Database({ url: testDatabase.url, poolSize: 1 });
  const unasked = new Database({ url: testDatabase.url, poolSize: 1, allowRlsBypass: true });
  try {
    await expect(refused.ping()).rejects.toThrow(
      /^Row-level security does not bind the role "baton" on forgotten, task_events, so .* ENABLE and FORCE it/,
    );
    await expect(refused.tenantQuery(randomUUID(), { text: 'SELECT 1' }, [])).rejects.toThrow(
      'Row-level security does not bind',
    );
    await unasked.ping();
  } finally {
    await client.query('DROP TABLE forgotten');
    await client.query('ALTER TABLE task_events FORCE ROW LEVEL SECURITY');
    await Promise.all([refused.close(), unasked.close()]);
  }
});
