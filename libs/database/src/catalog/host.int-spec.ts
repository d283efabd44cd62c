import { PLATFORM_ACTOR } from '../audit/audit-records.js';
import { randomUUID } from 'node:crypto';
import { createDatabase, type TestDatabase } from '../../../../test/support/index.js';
import { CatalogClient, HostStore, TenantStore } from '../index.js';

let testDatabase: TestDatabase;
let catalog: CatalogClient;
let hosts: HostStore;
let acme: string;
let other: string;

beforeAll(async () => {
  testDatabase = await createDatabase();
  catalog = new CatalogClient(testDatabase.url);
  hosts = new HostStore(catalog);
  const tenants = new TenantStore(catalog);
  acme = (await tenants.create('acme', PLATFORM_ACTOR)).id;
  other = (await tenants.create('other', PLATFORM_ACTOR)).id;
});
afterAll(async () => {
  await catalog.close();
  await testDatabase.drop();
});

it('a bound host is found however it is written, and no other', async () => {
  const binding = { host: 'agents.example.com', tenantId: acme, agent: 'echo', public: true };
  expect(await hosts.bind({ ...binding, host: 'Agents.Example.com:8443' }, PLATFORM_ACTOR)).toEqual(binding);
  for (const host of [
    'agents.example.com',
    'AGENTS.example.COM',
    'agents.example.com:80',
    'agents.example.com.',
  ]) {
    expect(await hosts.find(host)).toEqual(binding);
  }
  for (const host of [
    'example.com',
    'x.agents.example.com',
    '',
    ':80',
    'agents.example.com\0',
    'a'.repeat(9999),
  ]) {
    expect(await hosts.find(host)).toBeUndefined();
  }
  const six = { ...binding, host: '[::1]' };
  await hosts.bind(six, PLATFORM_ACTOR);
  expect(await hosts.find('[::1]:8080')).toEqual(six);
});

it('a host may change its agent, but not its tenant', async () => {
  const binding = { host: 'moving.example.com', tenantId: acme, agent: 'echo', public: false };
  await hosts.bind(binding, PLATFORM_ACTOR);
  expect(await hosts.bind({ ...binding, agent: 'index', public: true }, PLATFORM_ACTOR)).toMatchObject({
    agent: 'index',
  });
  expect(await hosts.bind({ ...binding, tenantId: other }, PLATFORM_ACTOR)).toBeUndefined();
  expect(await hosts.find(binding.host)).toEqual({ ...binding, agent: 'index', public: true });
});

it('of several tenants that want a host at once, one gets it', async () => {
  const binding = { host: 'wanted.example.com', agent: 'echo', public: true };
  const results = await Promise.all(
    [acme, other, acme, other, acme, other].map((tenantId) =>
      hosts.bind({ ...binding, tenantId }, PLATFORM_ACTOR),
    ),
  );
  const owners = new Set(results.flatMap((result) => (result ? [result.tenantId] : [])));
  expect([...owners]).toEqual([(await hosts.find(binding.host))?.tenantId]);
});

it('hosts are listed by name, of one tenant or all, until they are unbound', async () => {
  const binding = { host: 'aa.example.com', tenantId: other, agent: 'echo', public: false };
  await hosts.bind(binding, PLATFORM_ACTOR);
  expect((await hosts.list())[1]).toEqual(binding);
  expect((await hosts.list(other))[0]).toEqual(binding);
  expect(await hosts.list(randomUUID())).toEqual([]);
  expect(await hosts.unbind('AA.example.com', PLATFORM_ACTOR)).toEqual(binding);
  expect(await hosts.unbind('aa.example.com', PLATFORM_ACTOR)).toBeUndefined();
  expect(await hosts.find('aa.example.com')).toBeUndefined();
});
