import { PLATFORM_ACTOR } from '../audit/audit-records.js';
import { randomUUID } from 'node:crypto';
import { createDatabase, type TestDatabase } from '../../../../test/support/index.js';
import { CatalogClient, IssuerStore, TenantStore, type TrustedIssuer } from '../index.js';

let testDatabase: TestDatabase;
let catalog: CatalogClient;
let issuers: IssuerStore;
let acme: string;
let other: string;

beforeAll(async () => {
  testDatabase = await createDatabase();
  catalog = new CatalogClient(testDatabase.url);
  issuers = new IssuerStore(catalog);
  const tenants = new TenantStore(catalog);
  acme = (await tenants.create('acme', PLATFORM_ACTOR)).id;
  other = (await tenants.create('other', PLATFORM_ACTOR)).id;
});
afterAll(async () => {
  await catalog.close();
  await testDatabase.drop();
});

type NewIssuer = Omit<TrustedIssuer, 'id' | 'createdAt'>;

const entry = (more: Partial<NewIssuer> = {}): NewIssuer => ({
  tenantId: acme,
  issuer: 'https://id.example.com',
  audience: 'baton',
  selector: null,
  jwksUrl: null,
  subjectClaim: 'sub',
  scopes: ['agents:call'],
  grants: [{ claim: 'groups', value: 'staff', scopes: ['tasks:read'] }],
  agents: ['desk'],
  requestsPerSecond: 7,
  ...more,
});

async function add(more: Partial<NewIssuer> = {}): Promise<TrustedIssuer> {
  const result = await issuers.add(entry(more), PLATFORM_ACTOR);
  if ('conflict' in result) throw new Error(`in the way: ${JSON.stringify(result.conflict)}`);
  return result.added;
}

const inTheWay = async (more: Partial<NewIssuer>): Promise<string | undefined> => {
  const result = await issuers.add(entry(more), PLATFORM_ACTOR);
  return 'conflict' in result ? result.conflict.id : undefined;
};

it('an issuer is found by its URL, until its tenant removes it', async () => {
  const issuer = 'https://found.example.com';
  const added = await add({ issuer });
  expect(added).toMatchObject(entry({ issuer }));
  expect(await issuers.byIssuer(issuer)).toEqual([added]);
  expect(await issuers.list(acme)).toEqual([added]);
  expect(await issuers.list(other)).toEqual([]);
  expect(await issuers.list()).toContainEqual(added);
  expect(await issuers.byIssuer(`${issuer}/`)).toEqual([]);
  expect(await issuers.remove(other, added.id, PLATFORM_ACTOR)).toBeUndefined();
  expect(await issuers.remove(acme, randomUUID(), PLATFORM_ACTOR)).toBeUndefined();
  expect(await issuers.remove(acme, 'x', PLATFORM_ACTOR)).toBeUndefined();
  expect(await issuers.remove(acme, added.id, PLATFORM_ACTOR)).toEqual({ issuer: added, signedOut: [] });
  expect(await issuers.byIssuer(issuer)).toEqual([]);
});

it('an issuer and an audience are of one tenant', async () => {
  const { id } = await add();
  expect(await inTheWay({ tenantId: other })).toBe(id);
  expect(await inTheWay({})).toBe(id);
  expect(await inTheWay({ tenantId: other, selector: { claim: 'org', value: 'o1' } })).toBe(id);
  await add({ tenantId: other, audience: 'other' });
});

it('… or of several, if each has another value of the same claim', async () => {
  const issuer = 'https://many.example.com';
  const selected = (claim: string, value: string) => ({ issuer, selector: { claim, value } });
  const { id } = await add(selected('org', 'o1'));
  const second = await add({ tenantId: other, ...selected('org', 'o2') });
  expect(await inTheWay({ tenantId: other, ...selected('org', 'o1') })).toBe(id);
  expect([id, second.id]).toContain(await inTheWay({ tenantId: other, ...selected('team', 'o3') }));
  expect([id, second.id]).toContain(await inTheWay({ tenantId: other, issuer }));
});

it('the keys of an issuer are in one place', async () => {
  const issuer = 'https://keys.example.com';
  const jwksUrl = 'https://keys.example.com/jwks';
  const { id } = await add({ issuer, jwksUrl });
  expect(await inTheWay({ issuer, audience: 'b' })).toBe(id);
  expect(await inTheWay({ issuer, audience: 'b', jwksUrl: `${jwksUrl}2` })).toBe(id);
  await add({ issuer, audience: 'b', jwksUrl });
  const discovered = await add({ issuer: 'https://discovered.example.com' });
  expect(await inTheWay({ issuer: discovered.issuer, audience: 'b', jwksUrl })).toBe(discovered.id);
});

it('of several tenants that want an issuer at once, one gets it', async () => {
  const issuer = 'https://wanted.example.com';
  const selectors = [null, { claim: 'a', value: '1' }, { claim: 'b', value: '1' }];
  const results = await Promise.all(
    [acme, other, acme, other].flatMap((tenantId) =>
      selectors.map((selector) => issuers.add(entry({ tenantId, issuer, selector }), PLATFORM_ACTOR)),
    ),
  );
  expect(results.filter((result) => 'added' in result)).toHaveLength(1);
  expect(await issuers.byIssuer(issuer)).toHaveLength(1);
});

it('the URLs of issuers are those of one tenant, each once', async () => {
  const issuer = 'https://urls.example.com';
  const added = [await add({ issuer, audience: 'a' }), await add({ issuer, audience: 'b' })];
  expect((await issuers.urls(acme)).filter((url) => url === issuer)).toEqual([issuer]);
  expect(await issuers.urls(other)).not.toContain(issuer);
  // There are two tenants.
  expect(await issuers.urls()).toEqual([]);
  for (const { id } of added) await issuers.remove(acme, id, PLATFORM_ACTOR);
});

it('the URLs of issuers are known without a tenant if there is one alone', async () => {
  const alone = await createDatabase();
  const client = new CatalogClient(alone.url);
  const store = new IssuerStore(client);
  expect(await store.urls()).toEqual([]);
  const tenants = await new TenantStore(client).create('only', PLATFORM_ACTOR);
  await store.add(entry({ tenantId: tenants.id }), PLATFORM_ACTOR);
  expect(await store.urls()).toEqual(['https://id.example.com']);
  await client.close();
  await alone.drop();
});
