import { Client } from 'pg';
import { createDatabase, type TestDatabase } from '../../../../test/support/index.js';
import { CatalogClient } from './catalog-client.js';
import { Database } from './database.js';
import { DatabaseUnavailableError } from './database-unavailable-error.js';

const TENANT = '11111111-1111-4111-8111-111111111111';

/** What Postgres says when it cannot make a file larger. */
const FAIL = `BEGIN
  RAISE EXCEPTION 'could not extend file "base/1/2": No space left on device' USING ERRCODE = 'disk_full';
END`;
const WRITE = `DO $$ ${FAIL} $$`;

let test: TestDatabase;
beforeAll(async () => {
  test = await createDatabase();
  const client = new Client({ connectionString: test.url });
  await client.connect();
  await client.query(`CREATE FUNCTION fail_to_write() RETURNS trigger LANGUAGE plpgsql AS $$ ${FAIL} $$`);
  await client.query(
    'CREATE TRIGGER full_disk BEFORE INSERT OR DELETE ON tenants EXECUTE FUNCTION fail_to_write()',
  );
  await client.end();
});
afterAll(() => test.drop());

it('a full disk makes every way to write unavailable for a while; the process knows why, and is told once', async () => {
  const onDiskFull = jest.fn();
  const database = new Database({ url: test.url, poolSize: 1, onDiskFull });
  const catalog = new CatalogClient(test.url, { database });
  const ways = {
    change: () => catalog.change(TENANT, (prisma) => prisma.tenant.deleteMany()),
    sql: () => database.systemQuery({ text: WRITE }, []),
    transaction: () => database.inTenant(TENANT, (client) => client.query({ text: WRITE }, [])),
  };
  expect(database.isDiskFull).toBe(false);
  for (const [name, way] of Object.entries(ways)) {
    const error = await way().catch((reason: unknown) => reason);
    expect({ name, error }).toEqual({ name, error: expect.any(DatabaseUnavailableError) as Error });
    expect({ name, isDiskFull: database.isDiskFull }).toEqual({ name, isDiskFull: true });
  }
  expect(onDiskFull).toHaveBeenCalledTimes(1);
  // What reads goes on.
  await database.systemQuery({ text: 'SELECT 1' }, []);
  await Promise.all([catalog.close(), database.close()]);
});
