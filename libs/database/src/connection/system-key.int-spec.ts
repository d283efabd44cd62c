import { randomBytes, randomUUID } from 'node:crypto';
import { inspect } from 'node:util';
import { Client } from 'pg';
import { createDatabase, type TestDatabase } from '../../../../test/support/index.js';
import { dropConditions, insertFor } from '../../../../test/support/sample-rows.js';
import { enforceSystemKey, ensureSystemKey, releaseSystemKey } from '../migrations/system-key.js';
import { CatalogClient } from './catalog-client.js';
import { Database } from './database.js';
import { systemScope } from './row-security.js';

const KEY = randomBytes(32).toString('base64');
const [MINE, THEIRS] = [randomUUID(), randomUUID()];
const REFUSED = 'The scope of all tenants needs the key of this database';

let test: TestDatabase;
let database: Database;
let catalog: CatalogClient;
/** A process without the key, such as one of an earlier release. */
let keyless: Client;
/** Tables that row-level security guards, and the column with the tenant of a row. */
let tables: { name: string; tenantColumn: string | null }[];

beforeAll(async () => {
  test = await createDatabase();
  keyless = new Client({ connectionString: test.url });
  await keyless.connect();
  const { rows } = await keyless.query<(typeof tables)[number]>(
    `SELECT c.relname AS name, CASE c.relname WHEN 'tenants' THEN 'id' ELSE a.attname END AS "tenantColumn"
     FROM pg_class c LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'tenant_id' AND NOT a.attisdropped
     WHERE c.relkind = 'r' AND c.relrowsecurity ORDER BY 1`,
  );
  tables = rows;
  await dropConditions(keyless);
  await keyless.query(`SET baton.tenant = 'system'`);
  for (const table of tables) {
    for (const tenantId of [MINE, THEIRS]) await keyless.query(await insertFor(keyless, table, tenantId));
  }
  // A role that may create functions could leave this behind.
  await keyless.query(`CREATE SCHEMA evil;
    CREATE FUNCTION evil.sha256(bytea) RETURNS bytea LANGUAGE sql AS 'SELECT null::bytea';
    CREATE FUNCTION evil.current_setting(text, boolean) RETURNS text LANGUAGE sql AS $$ SELECT '' $$;
    CREATE FUNCTION evil.any_bytes(bytea, bytea) RETURNS boolean LANGUAGE sql AS 'SELECT true';
    CREATE OPERATOR evil.= (LEFTARG = bytea, RIGHTARG = bytea, FUNCTION = evil.any_bytes)`);
  await enforceSystemKey(test.url, [KEY]);
  database = new Database({ url: test.url, systemKey: KEY, poolSize: 2 });
  catalog = new CatalogClient(test.url, { systemKey: KEY, poolSize: 2 });
  // Both have connections that were in the scope of all tenants before.
  await Promise.all([1, 2].map(() => database.systemQuery({ text: 'SELECT count(*) FROM tasks' }, [])));
  await Promise.all([1, 2].map(() => catalog.run((prisma) => prisma.tenant.count())));
});

afterAll(async () => {
  await Promise.all([keyless.end(), database.close(), catalog.close()]);
  await test.drop();
});

/** What an injected statement gets out of each of the two pools, in the scope of a tenant; errors count as nothing. */
async function asMine(text: string): Promise<unknown[]> {
  const nothing = () => [];
  const [one, other] = await Promise.all([
    database.tenantQuery(MINE, { text }, []).catch(nothing),
    catalog.inTenant(MINE, (prisma) => prisma.$queryRawUnsafe<unknown[]>(text)).catch(nothing),
  ]);
  return [...one, ...other];
}

/** Everything that is in a value. */
const said = (value: unknown): string =>
  inspect(value, { depth: null, maxArrayLength: null, maxStringLength: null, showHidden: true });

const asSystem = `set_config('baton.tenant', 'system', true)`;

/** Some column of a table, to change it to what it is. */
const columnOf = (name: string): string => tables.find((table) => table.name === name)?.tenantColumn ?? 'id';

/** A query that first leaves the scope of its tenant, as far as it can. */
const leaving = (name: string, how = asSystem): string =>
  `WITH s AS MATERIALIZED (SELECT ${how}) SELECT t.* FROM s, ${name} t`;
const withKey = (key: string): string => `${asSystem}, set_config('baton.system_key', ${key}, true)`;

/** Each reads everything while the database asks for no key. */
const INJECTED: Record<string, (name: string) => string> = {
  'a call in front': (name) => `SELECT t.* FROM (SELECT ${asSystem} OFFSET 0) s, ${name} t`,
  'a query in front': (name) => leaving(name),
  'a guess of the key': (name) => leaving(name, withKey(`'${'A'.repeat(43)}='`)),
  'functions of its own': (name) =>
    `WITH p AS MATERIALIZED (SELECT set_config('search_path', 'evil, pg_catalog, public', true), ${asSystem}) SELECT t.* FROM p, public.${name} t`,
  'the hash for the key': (name) =>
    leaving(
      name,
      withKey(`substring(pg_get_functiondef('system_scope_granted()'::regprocedure) from '[0-9a-f]{64}')`),
    ),
  'the value of a reset': (name) =>
    leaving(name, withKey(`(SELECT reset_val FROM pg_settings WHERE name = 'baton.system_key')`)),
  'a query as a text': (name) =>
    `WITH s AS MATERIALIZED (SELECT ${asSystem})
     SELECT query_to_xml('SELECT * FROM ${name}', true, false, '')::text AS seen FROM s`,
  'a change': (name) =>
    `UPDATE ${name} t SET ${columnOf(name)} = t.${columnOf(name)} FROM (SELECT ${asSystem} OFFSET 0) s RETURNING t.*`,
};
/** The protocol refuses them, with or without a key. */
const STACKED: Record<string, (name: string) => string> = {
  'a second statement': (name) => `SELECT 1; SET LOCAL baton.tenant = 'system'; SELECT * FROM ${name}`,
  'another transaction': (name) => `ROLLBACK; SELECT * FROM ${name}`,
};

describe.each(Object.entries(INJECTED))('an injected statement with %s', (_, attack) => {
  it('reads no row of another tenant, in any table; without a key it would', async () => {
    for (const { name } of tables) {
      expect([name, said(await asMine(attack(name))).includes(THEIRS)]).toEqual([name, false]);
    }
    await releaseSystemKey(test.url);
    const open = said(await asMine(attack('tasks')));
    await enforceSystemKey(test.url, [KEY]);
    expect(open).toContain(THEIRS);
  });
});

it.each(Object.entries(STACKED))('%s is refused', async (_, attack) => {
  for (const { name } of tables) expect([name, await asMine(attack(name))]).toEqual([name, []]);
});

/** As a process with the key, on a connection of its own. */
async function inSystem(text: string) {
  const rows = await database.systemQuery({ text }, []);
  return { rows };
}

it('sees all rows with the key, and an error without it: no process takes all tenants for deleted', async () => {
  for (const { name } of tables) {
    const { rows } = await inSystem(`SELECT 1 FROM ${name}`);
    expect([name, rows.length >= 2]).toEqual([name, true]);
    await expect(keyless.query(`SELECT 1 FROM ${name}`)).rejects.toThrow(REFUSED);
  }
  const wrong = new Database({ url: test.url, systemKey: randomBytes(32).toString('base64'), poolSize: 1 });
  await expect(wrong.ping()).rejects.toThrow(/^DATABASE_SYSTEM_KEY is not the key of this database/);
  await wrong.close();
  const without = new CatalogClient(test.url);
  await expect(without.run((prisma) => prisma.tenant.count())).rejects.toThrow(REFUSED);
  await without.close();
});

it.each([
  ['current_setting', `SELECT current_setting('baton.system_key', true) AS key`],
  ['pg_settings', `SELECT * FROM pg_settings WHERE name LIKE 'baton.%'`],
  ['pg_stat_activity', 'SELECT query FROM pg_stat_activity'],
  ['pg_prepared_statements', 'SELECT * FROM pg_prepared_statements'],
  ['the function', `SELECT pg_get_functiondef('system_scope_granted()'::regprocedure)`],
  ['a stacked statement', `SELECT 1; ROLLBACK; SELECT current_setting('baton.system_key')`],
  ['RESET', 'RESET baton.system_key'],
])('%s does not tell the key to a tenant', async (_, text) => {
  const working = database.systemQuery({ text: 'SELECT count(*), pg_sleep(0.2) FROM tasks' }, []);
  expect(said(await asMine(text))).not.toContain(KEY);
  await working;
});

it('no text of a statement and no error has the key', async () => {
  expect(systemScope(KEY)).toMatchObject({ text: expect.not.stringContaining(KEY) as string, values: [KEY] });
  const errors = await Promise.all([
    database.systemQuery({ text: 'SELECT 1/0' }, []).catch((error: unknown) => error),
    catalog.run((prisma) => prisma.$queryRawUnsafe('SELECT 1/0')).catch((error: unknown) => error),
    database.tenantQuery(MINE, { text: `SELECT ${asSystem}, 1/0` }, []).catch((error: unknown) => error),
  ]);
  for (const error of errors) {
    expect(error).toBeInstanceOf(Error);
    expect(said(error)).not.toContain(KEY);
  }
});

it('asks for the key once for each table of a statement, whatever number of rows it reads', async () => {
  const explained = `EXPLAIN (ANALYZE, VERBOSE, COSTS OFF, TIMING OFF, BUFFERS OFF)
    SELECT count(*) FROM task_events e JOIN runs r ON r.tenant_id = e.tenant_id`;
  const rows = await database.systemQuery<{ 'QUERY PLAN': string }>({ text: explained }, []);
  const lines = rows.map((row) => row['QUERY PLAN']);
  const asking = lines.flatMap((line, at) =>
    line.includes('Output: system_scope_granted()') ? [lines.slice(at - 2, at).join()] : [],
  );
  expect(asking).toEqual([
    expect.stringMatching(/InitPlan.*Result \(actual rows=1.* loops=1\)/),
    expect.stringMatching(/InitPlan.*Result \(actual rows=1.* loops=1\)/),
  ]);
});

it('does not ask a tenant for the key when its statement has waited for a row that another one changed', async () => {
  const rows = { text: 'UPDATE tasks SET last_sequence = last_sequence + 1 RETURNING tenant_id AS tenant' };
  const locked = { text: 'SELECT tenant_id AS tenant FROM tasks FOR UPDATE' };
  const waiting = `SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`;
  for (const statement of [rows, locked]) {
    const waited = await database.inTenant(MINE, async (first) => {
      await first.query(rows, []);
      const second = database.tenantQuery<{ tenant: string }>(MINE, statement, []);
      second.catch(() => undefined);
      while ((await keyless.query(waiting)).rowCount === 0);
      return { second };
    });
    expect(await waited.second).toEqual([{ tenant: MINE }]);
  }
});

it('is replaced where it asks in every scope, as it once did', async () => {
  await keyless.query(`CREATE OR REPLACE FUNCTION system_scope_granted() RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN
    IF current_setting('baton.system_key', true) = '${KEY}' THEN RETURN true; END IF;
    RAISE insufficient_privilege USING MESSAGE = '${REFUSED}'; END $$`);
  await ensureSystemKey(test.url, KEY);
  const granted = `SELECT system_scope_granted() AS granted`;
  expect(await database.tenantQuery(MINE, { text: granted }, [])).toEqual([{ granted: false }]);
  await expect(keyless.query(granted)).rejects.toThrow(REFUSED);
});

it('lets processes without the key go on until it is enforced, and takes two keys during a change', async () => {
  const next = randomBytes(32).toString('base64');
  const opens = async (key: string): Promise<boolean> => {
    const process = new Database({ url: test.url, systemKey: key, poolSize: 1, allowRlsBypass: true });
    try {
      return await process.systemQuery({ text: 'SELECT 1 FROM tenants' }, []).then(
        () => true,
        () => false,
      );
    } finally {
      await process.close();
    }
  };
  await releaseSystemKey(test.url);
  expect((await keyless.query('SELECT 1 FROM tenants')).rowCount).toBe(2);
  await enforceSystemKey(test.url, [next, KEY]);
  await expect(keyless.query('SELECT 1 FROM tenants')).rejects.toThrow(REFUSED);
  expect([await opens(next), await opens(KEY)]).toEqual([true, true]);
  await enforceSystemKey(test.url, [next]);
  expect([await opens(next), await opens(KEY)]).toEqual([true, false]);
  await enforceSystemKey(test.url, [KEY]);
  const { rows } = await inSystem(
    `SELECT action, detail FROM audit_records WHERE action LIKE 'system-key.%' ORDER BY at DESC, id LIMIT 4`,
  );
  expect(rows.reverse()).toEqual([
    { action: 'system-key.release', detail: {} },
    { action: 'system-key.enforce', detail: { keys: 2 } },
    { action: 'system-key.enforce', detail: { keys: 1 } },
    { action: 'system-key.enforce', detail: { keys: 1 } },
  ]);
});
