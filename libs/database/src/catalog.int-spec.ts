import type { AgentDefinition } from '@baton/a2a';
import { randomUUID } from 'node:crypto';
import { createDatabase, type TestDatabase } from '../../../test/support/index.js';
import { AgentStore, CatalogClient, NameTakenError, TenantStore, TokenStore, isTransient } from './index.js';

let place: TestDatabase;
let catalog: CatalogClient;
let tenants: TenantStore;
let tokens: TokenStore;
let agents: AgentStore;

beforeAll(async () => {
  place = await createDatabase();
  catalog = new CatalogClient(place.url);
  tenants = new TenantStore(catalog);
  tokens = new TokenStore(catalog);
  agents = new AgentStore(catalog);
});
afterAll(async () => {
  await catalog.close();
  await place.drop();
});

const definition = (name: string): AgentDefinition => ({
  ...{ name, description: 'd \u0000', version: '1', runtime: 'echo', config: { deep: [1, { a: null }] } },
  ...{ skills: [], inputModes: ['text/plain'], outputModes: ['text/plain'], extensions: [] },
});

describe('tenants', () => {
  it('are found by slug and id, with index as their default agent until another is set', async () => {
    const tenant = await tenants.create('acme');
    expect(tenant).toMatchObject({ slug: 'acme', defaultAgent: 'index' });
    expect(await tenants.bySlug('acme')).toEqual(tenant);
    expect(await tenants.byId(tenant.id)).toEqual(tenant);
    expect(await tenants.setDefaultAgent('acme', 'echo')).toEqual({ ...tenant, defaultAgent: 'echo' });
    expect(await tenants.list()).toEqual([{ ...tenant, defaultAgent: 'echo' }]);
    expect(await tenants.setDefaultAgent('nobody', 'echo')).toBeUndefined();
    expect(await tenants.bySlug('nobody')).toBeUndefined();
    expect(await tenants.byId('nonsense')).toBeUndefined();
  });

  it('have limits of their own, each set and given back for itself', async () => {
    await tenants.create('limited');
    const limits = { requestsPerSecond: 5, openStreams: null, retentionDays: 0.25 };
    expect((await tenants.setLimits('limited', limits))?.limits).toEqual(limits);
    const all = [{ weight: 2 }, { bodyBytes: 999_999_999_999_999 }, { runsAtOnce: 3 }];
    await Promise.all(all.map((one) => tenants.setLimits('limited', one)));
    const changed = await tenants.setLimits('limited', { weight: 7 }, [
      'openStreams',
      'runsAtOnce',
      'eventBytes',
    ]);
    expect(changed?.limits).toEqual({
      ...{ requestsPerSecond: 5, retentionDays: 0.25 },
      ...{ weight: 7, bodyBytes: 999_999_999_999_999 },
    });
    expect(await tenants.setLimits('nobody', limits)).toBeUndefined();
  });

  it('can not have a slug twice', async () => {
    await tenants.create('twice');
    const again = tenants.create('twice');
    await expect(again).rejects.toThrow(NameTakenError);
    await expect(again).rejects.toThrow("There is already a tenant 'twice'");
  });
});

describe('tokens', () => {
  it('are found by their hash, and revoked by id or prefix within the tenant', async () => {
    const tenantId = (await tenants.create(`t-${randomUUID()}`)).id;
    const expiresAt = new Date('2030-01-01T00:00:00.123Z');
    const input = {
      tenantId,
      name: 'ci',
      hash: randomUUID(),
      prefix: 'bt_abc',
      scopes: ['tasks:read' as const],
    };
    const token = await tokens.create({ ...input, expiresAt });
    expect(token).toMatchObject({ tenantId, name: 'ci', scopes: ['tasks:read'], expiresAt, revokedAt: null });
    expect(token).not.toHaveProperty('hash');
    expect(await tokens.byHash(input.hash)).toEqual(token);
    expect(await tokens.byHash('other')).toBeUndefined();
    expect(await tokens.revoke(randomUUID(), token.id)).toBeUndefined();
    expect(await tokens.revoke(tenantId, 'bt_xyz')).toBeUndefined();
    const revoked = await tokens.revoke(tenantId, 'bt_abc');
    expect(revoked?.revokedAt).toBeInstanceOf(Date);
    expect(await tokens.revoke(tenantId, token.id)).toEqual(revoked);
    expect(await tokens.list(tenantId)).toEqual([revoked]);
  });
});

describe('agents', () => {
  it('of a tenant are its own, and hide installed ones of the same slug', async () => {
    const [one, two] = [await tenants.create('one'), await tenants.create('two')];
    await agents.install('helper', definition('installed'), null);
    const own = await agents.create({ tenantId: one.id, slug: 'helper', definition: definition('own') });
    expect(own).toMatchObject({ slug: 'helper', origin: 'catalog', definition: definition('own') });
    expect(await agents.find(one.id, 'helper')).toEqual(own);
    expect(await agents.find(one.id, own.id)).toEqual(own);
    expect(await agents.find(two.id, own.id)).toBeUndefined();
    expect(await agents.find(two.id, 'help\0er')).toBeUndefined();
    expect(await agents.find(two.id, 'helper')).toMatchObject({ origin: 'installed' });
    expect(await agents.list(one.id)).toEqual([own]);
    const taken = agents.create({ tenantId: one.id, slug: 'helper', definition: definition('x') });
    await expect(taken).rejects.toThrow(NameTakenError);
    expect(await agents.remove(two.id, 'helper')).toBe(false);
    expect(await agents.remove(one.id, 'helper')).toBe(true);
    expect(await agents.find(one.id, 'helper')).toMatchObject({ definition: definition('installed') });
  });

  it('that are installed keep their id, and are there for the tenants they name', async () => {
    const [named, other] = [await tenants.create('named'), await tenants.create('other')];
    await Promise.all([1, 2, 3].map(() => agents.install('limited', definition('v1'), ['named'])));
    const before = await agents.find(named.id, 'limited');
    await agents.install('limited', definition('v2'), [named.id]);
    const after = await agents.find(named.id, 'limited');
    expect(after).toEqual({ ...before, definition: definition('v2') });
    expect(await agents.find(other.id, 'limited')).toBeUndefined();
    expect((await agents.list(other.id)).map(({ slug }) => slug)).not.toContain('limited');
    const queries = async (slugOrId: string): Promise<number> => {
      const spies = [jest.spyOn(catalog, 'run'), jest.spyOn(catalog, 'inTenant')];
      await agents.find(other.id, slugOrId);
      const count = spies.reduce((sum, spy) => sum + spy.mock.calls.length, 0);
      jest.restoreAllMocks();
      return count;
    };
    // Whoever may not use it does not learn from the time it takes that it is there.
    expect(await queries('limited')).toBe(await queries('unknown'));
    expect(await queries(after!.id)).toBe(await queries(randomUUID()));
    await agents.install('limited', definition('v2'), []);
    expect(await agents.find(named.id, 'limited')).toBeUndefined();
    await agents.install('limited', definition('v2'), null);
    expect(await agents.find(other.id, after!.id)).toBeDefined();
  });
});

it('a catalog that can not be reached is an error to try again after', async () => {
  const nowhere = new CatalogClient('postgres://nobody@127.0.0.1:1/none');
  const error: unknown = await new TenantStore(nowhere).list().catch((reason: unknown) => reason);
  expect(isTransient(error)).toBe(true);
  expect((error as Error).message).toMatch(/^Postgres is not available/);
  await nowhere.close();
});

it('every model of the schema is what the migrations have made', async () => {
  const { tenant, apiToken, catalogAgent, installedAgent, hostBinding } = catalog.prisma;
  const { task, run, taskEvent, taskMessage, taskAlias } = catalog.prisma;
  const kept = [tenant, apiToken, catalogAgent, installedAgent, hostBinding];
  const reads = [task, run, taskEvent, taskMessage, taskAlias, ...kept].map((model) =>
    (model as typeof task).findFirst(),
  );
  await expect(Promise.all(reads)).resolves.toHaveLength(10);
});
