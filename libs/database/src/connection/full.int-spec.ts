import { Client } from 'pg';
import { createDatabase, type TestDatabase } from '../../../../test/support/index.js';
import { CatalogClient } from './catalog-client.js';
import { Database } from './database.js';
import { DatabaseUnavailableError } from './database-unavailable-error.js';

const TENANT = '11111111-1111-4111-8111-111111111111';

let test: TestDatabase;
let held: Client[];
beforeAll(async () => {
  test = await createDatabase();
  held = [];
  const name = new URL(test.url).pathname.slice(1);
  for (let n = 0; n < 2; n++) {
    const client = new Client({ connectionString: test.url });
    client.on('error', () => undefined);
    await client.connect();
    held.push(client);
  }
  await held[0]!.query(`ALTER DATABASE ${name} CONNECTION LIMIT 2`);
});
afterAll(async () => {
  for (const client of held) await client.end();
  await test.drop();
});

it('a database without a free connection is away for a while, for every way to it, and the error has the reason', async () => {
  const database = new Database({ url: test.url, poolSize: 1 });
  const catalog = new CatalogClient(test.url, { database });
  const ways = {
    list: () => catalog.inTenant(TENANT, (prisma) => prisma.apiToken.findMany()),
    find: () => catalog.run((prisma) => prisma.tenant.findUnique({ where: { slug: 'x' } })),
    change: () => catalog.change(TENANT, (prisma) => prisma.apiToken.deleteMany()),
    raw: () => catalog.run((prisma) => prisma.$queryRaw`SELECT 1`),
    sql: () => database.systemQuery({ text: 'SELECT 1' }, []),
    transaction: () => database.inTenant(TENANT, async () => undefined),
  };
  for (const [name, way] of Object.entries(ways)) {
    const error = await way().catch((reason: unknown) => reason);
    expect({ name, error }).toEqual({
      name,
      error: expect.any(DatabaseUnavailableError) as Error,
    });
  }
  expect(database.isFull).toBe(true);
  await Promise.all([catalog.close(), database.close()]);
});

it.each(['of the catalog', 'of tasks'])('a refused connection %s is noted', async (kind) => {
  const database = new Database({ url: test.url, poolSize: 1 });
  const catalog = new CatalogClient(test.url, { database });
  expect(database.isFull).toBe(false);
  const asked =
    kind === 'of tasks'
      ? database.systemQuery({ text: 'SELECT 1' }, [])
      : catalog.run((prisma) => prisma.tenant.findMany());
  await expect(asked).rejects.toThrow('Postgres is not available: ');
  expect(database.isFull).toBe(true);
  await Promise.all([catalog.close(), database.close()]);
});
