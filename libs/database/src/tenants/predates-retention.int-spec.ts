import { PLATFORM_ACTOR } from '../audit/audit-records.js';
import { Client } from 'pg';
import { createDatabase, type TestDatabase } from '../../../../test/support/index.js';
import { CatalogClient, inspectDatabase, migrate, TenantStore } from '../index.js';

const MIGRATION = '20261126121000_predates_retention';

let test: TestDatabase;
let client: Client;
let catalog: CatalogClient;
beforeEach(async () => {
  test = await createDatabase();
  client = new Client({ connectionString: test.url });
  await client.connect();
  catalog = new CatalogClient(test.url);
});
afterEach(async () => {
  await catalog.close();
  await client.end();
  await test.drop();
});

it('tenants of an earlier release keep their ended tasks after the upgrade, and new ones have the default retention', async () => {
  await client.query('ALTER TABLE tenants DROP COLUMN predates_retention');
  await client.query(`DELETE FROM _prisma_migrations WHERE migration_name = '${MIGRATION}'`);
  await client.query(`SET baton.tenant = 'system'`);
  await client.query(
    `INSERT INTO tenants (id, slug) VALUES (gen_random_uuid(), 'old'), (gen_random_uuid(), 'own')`,
  );
  await migrate(test.url);

  const tenants = new TenantStore(catalog);
  await tenants.create('new', PLATFORM_ACTOR);
  const predates = async () => (await tenants.list()).map((each) => [each.slug, each.predatesRetention]);
  expect(await predates()).toEqual([
    ['new', false],
    ['old', true],
    ['own', true],
  ]);
  const [old] = (await tenants.list()).filter(({ slug }) => slug === 'old');
  expect(await tenants.byId(old!.id)).toMatchObject({ predatesRetention: true });

  // The doctor counts tenants for which the operator has not decided yet.
  const undecided = async () => (await inspectDatabase(test.url, undefined)).tenantsWithoutRetention;
  expect(await undecided()).toBe(2);
  await tenants.setLimits('own', { retentionDays: null }, [], PLATFORM_ACTOR);
  expect(await undecided()).toBe(1);
});
