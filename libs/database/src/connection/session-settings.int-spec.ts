import { SESSION_SETTINGS, sessionConfig } from '@baton/postgres';
import { randomBytes } from 'node:crypto';
import { Client } from 'pg';
import {
  asAdministrator,
  createDatabase,
  databaseUrl,
  type TestDatabase,
} from '../../../../test/support/database.js';
import { BackupSession } from '../backup/backup-session.js';
import { inspectDatabase, migrate } from '../index.js';
import { CatalogClient } from './catalog-client.js';
import { Database } from './database.js';
import { assertSession, NOT_IN_TRANSACTION } from './session-check.js';

// A server, a database or a role may have any setting. Here the role has all that an administrator could give it.

/** Release 14 has no other. */
const PROVIDER = process.env.TEST_POSTGRES === '14' ? '' : 'LOCALE_PROVIDER libc';

/** As far from what statements rely on as Postgres allows. */
const HOSTILE: Record<keyof typeof SESSION_SETTINGS, string> = {
  TimeZone: 'Asia/Kolkata',
  DateStyle: 'German, DMY',
  IntervalStyle: 'postgres_verbose',
  array_nulls: 'off',
  bytea_output: 'escape',
  extra_float_digits: '-15',
  standard_conforming_strings: 'off',
  search_path: 'nowhere',
  row_security: 'off',
  transform_null_equals: 'on',
  quote_all_identifiers: 'on',
  exit_on_error: 'on',
  default_transaction_isolation: 'serializable',
  default_transaction_deferrable: 'on',
  statement_timeout: '20s',
  lock_timeout: '20s',
  idle_in_transaction_session_timeout: '20s',
  idle_session_timeout: '20s',
  jit: 'on',
  plan_cache_mode: 'force_generic_plan',
};
const TIMEOUTS = ['statement_timeout', 'lock_timeout', 'idle_in_transaction_session_timeout'];
/** The timeouts of a kind of connection are its own. */
const NAMES = Object.keys(SESSION_SETTINGS).filter((name) => !TIMEOUTS.includes(name));
const EXPECTED = NAMES.map((name) => [name, SESSION_SETTINGS[name as keyof typeof SESSION_SETTINGS]]);
const READ = `SELECT json_agg(json_build_array(n, current_setting(n))) AS found
  FROM unnest('{${NAMES.join()}}'::text[]) AS n`;
type Found = { found: [string, string][] };

let test: TestDatabase;
beforeAll(async () => {
  test = await createDatabase();
  await setForRole(HOSTILE);
});
afterAll(() => test.drop());

/** In this database, for the role that all connections have. `undefined` takes a setting back. */
async function setForRole(settings: Record<string, string | undefined>): Promise<void> {
  const client = new Client(sessionConfig(test.url));
  await client.connect();
  const database = new URL(test.url).pathname.slice(1);
  for (const [name, value] of Object.entries(settings)) {
    const change =
      value === undefined ? `RESET ${name}` : `SET ${name} = ${name === 'DateStyle' ? value : `'${value}'`}`;
    await client.query(`ALTER ROLE CURRENT_USER IN DATABASE ${database} ${change}`);
  }
  await client.end();
}

/** What a kind of connection finds. */
const KINDS: Record<string, (read: string) => Promise<Found[]>> = {
  'of tasks, runs and leases': (read) =>
    closing(new Database({ url: test.url, poolSize: 1 }), (database) =>
      database.systemQuery<Found>({ text: read }, []),
    ),
  'of tasks and runs in a transaction': (read) =>
    closing(new Database({ url: test.url, poolSize: 1 }), (database) =>
      database.inSystem((transaction) => transaction.query<Found>({ text: read }, [])),
    ),
  'of the catalog': (read) =>
    closing(new CatalogClient(test.url), (catalog) =>
      catalog.run((prisma) => prisma.$queryRawUnsafe<Found[]>(read)),
    ),
  'of backups': (read) =>
    BackupSession.open(test.url, (session) =>
      session.transact('READ ONLY', () => session.query<Found>(read)),
    ),
  'of migrations, the doctor and the queue': async (read) => {
    const client = new Client(sessionConfig(test.url));
    await client.connect();
    const { rows } = await client.query<Found>(read);
    await client.end();
    return rows;
  },
};

async function closing<Client extends { close(): Promise<void> }, T>(
  client: Client,
  work: (client: Client) => Promise<T>,
): Promise<T> {
  try {
    return await work(client);
  } finally {
    await client.close();
  }
}

it.each(Object.keys(KINDS))('a connection %s has its own settings, whatever the role has', async (kind) => {
  const [row] = (await KINDS[kind]?.(READ)) ?? [];
  expect(row?.found).toEqual(EXPECTED);
});

describe('through a pooler', () => {
  const pooled = () => new Database({ url: test.url, poolSize: 1, isPooled: true });
  const inTransaction = EXPECTED.filter(
    ([name = '']) => !(name in NOT_IN_TRANSACTION) && name !== 'idle_session_timeout',
  );
  const restored = Object.fromEntries(Object.keys(NOT_IN_TRANSACTION).map((name) => [name, undefined]));

  it.each([
    ['default_transaction_isolation', 'serializable', 'read committed'],
    ['default_transaction_deferrable', 'on', 'off'],
  ])(
    'a transaction cannot set %s, so the start is refused with its name and the remedy',
    async (name, value, expected) => {
      await setForRole({ ...restored, [name]: value });
      const remedy = `The setting ${name} of Postgres is ${value} for the role "baton", and Baton relies on ${expected}: ALTER ROLE "baton" IN DATABASE`;
      await expect(closing(pooled(), (database) => database.ping())).rejects.toThrow(remedy);
    },
  );

  it('each transaction has all others', async () => {
    await setForRole(restored);
    const [one, other] = await closing(pooled(), async (database) => [
      await database.systemQuery<Found>({ text: READ }, []),
      await database.inSystem((transaction) => transaction.query<Found>({ text: READ }, [])),
    ]);
    for (const rows of [one, other]) {
      const found = rows[0]?.found.filter(([name]) => inTransaction.some(([each]) => each === name));
      expect(found).toEqual(inTransaction);
    }
    await setForRole(HOSTILE);
  });
});

it('a pooler that drops what sessions ask for is refused, with the setting and the remedy', async () => {
  // As PgBouncer with `ignore_startup_parameters = options` does.
  const client = new Client({ connectionString: test.url });
  await client.connect();
  await expect(assertSession(client)).rejects.toThrow(
    'The setting TimeZone is Asia/Kolkata in a session that has asked for UTC, so a pooler drops what sessions ask for: set DATABASE_DIRECT_URL',
  );
  await client.end();
});

it('migrations and the doctor work in such a database', async () => {
  expect(await migrate(test.url)).toEqual([]);
  expect(await inspectDatabase(test.url, undefined)).toMatchObject({
    session: undefined,
    migrations: { pending: [] },
  });
});

describe('a database that is not UTF-8', () => {
  const name = `test_${randomBytes(6).toString('hex')}`;
  const url = databaseUrl(name);
  beforeAll(() =>
    asAdministrator(
      `CREATE DATABASE ${name} ENCODING 'SQL_ASCII' ${PROVIDER} LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0`,
    ),
  );
  afterAll(() => asAdministrator(`DROP DATABASE ${name}`));
  const refusal = `The database "${name}" has the encoding SQL_ASCII, so it cannot store every text: create another one with ENCODING 'UTF8'`;

  it('is refused by migrations and by processes, with the remedy', async () => {
    await expect(migrate(url)).rejects.toThrow(refusal);
    await expect(closing(new Database({ url, poolSize: 1 }), (database) => database.ping())).rejects.toThrow(
      refusal,
    );
    await expect(
      closing(new CatalogClient(url), (catalog) => catalog.run((prisma) => prisma.tenant.findMany())),
    ).rejects.toThrow(refusal);
  });

  it('is a fault for the doctor', async () => {
    expect((await inspectDatabase(url, undefined)).session).toContain(refusal);
  });
});

it('a database is found by its name, whatever characters it has', async () => {
  const name = `test/?#=+%25_${randomBytes(6).toString('hex')}`;
  await asAdministrator(`CREATE DATABASE "${name}"`);
  const url = new URL(test.url);
  url.pathname = `/${encodeURIComponent(name)}`;
  try {
    const rows = await closing(
      new Database({ url: url.toString(), poolSize: 1, allowRlsBypass: true }),
      (database) =>
        database.systemQuery<{ name: string }>({ text: 'SELECT current_database()::text AS name' }, []),
    );
    expect(rows).toEqual([{ name }]);
  } finally {
    await asAdministrator(`DROP DATABASE "${name}"`);
  }
});
