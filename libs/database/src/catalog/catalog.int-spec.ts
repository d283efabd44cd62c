import { PLATFORM_ACTOR } from '../audit/audit-records.js';
import type { AgentDefinition } from '@baton/a2a';
import { randomUUID } from 'node:crypto';
import { createDatabase, type TestDatabase } from '../../../../test/support/index.js';
import {
  AgentCatalogStore,
  AgentStore,
  CatalogClient,
  HostStore,
  NameTakenError,
  SecretStore,
  TenantStore,
  TokenStore,
  isTransient,
} from '../index.js';

let testDatabase: TestDatabase;
let catalog: CatalogClient;
let tenants: TenantStore;
let tokens: TokenStore;
let agents: AgentStore;
let entries: AgentCatalogStore;

beforeAll(async () => {
  testDatabase = await createDatabase();
  catalog = new CatalogClient(testDatabase.url);
  tenants = new TenantStore(catalog);
  tokens = new TokenStore(catalog);
  agents = new AgentStore(catalog);
  entries = new AgentCatalogStore(catalog);
});
afterAll(async () => {
  await catalog.close();
  await testDatabase.drop();
});

const definition = (name: string): AgentDefinition => ({
  name,
  description: 'd \u0000',
  version: '1',
  runtime: 'echo',
  config: { deep: [1, { a: null }] },
  skills: [],
  inputModes: ['text/plain'],
  outputModes: ['text/plain'],
  extensions: [],
});

const newAgent = (tenantId: string, slug: string, name: string) => ({
  tenantId,
  slug,
  enabled: true,
  by: 'operator',
  definition: definition(name),
});

describe('tenants', () => {
  it('are found by slug and id, with index as their default agent until another is set', async () => {
    const tenant = await tenants.create('acme', PLATFORM_ACTOR);
    expect(tenant).toMatchObject({ slug: 'acme', defaultAgent: 'index' });
    expect(await tenants.bySlug('acme')).toEqual(tenant);
    expect(await tenants.byId(tenant.id)).toEqual({ ...tenant, hasSpendingCaps: false });
    expect(await tenants.set('acme', { defaultAgent: 'echo' }, PLATFORM_ACTOR)).toEqual({
      ...tenant,
      defaultAgent: 'echo',
    });
    expect(await tenants.list()).toEqual([{ ...tenant, defaultAgent: 'echo' }]);
    expect(await tenants.set('nobody', { defaultAgent: 'echo' }, PLATFORM_ACTOR)).toBeUndefined();
    expect(await tenants.bySlug('nobody')).toBeUndefined();
    expect(await tenants.byId('nonsense')).toBeUndefined();
  });

  it('have limits of their own, each set and given back for itself', async () => {
    await tenants.create('limited', PLATFORM_ACTOR);
    const limits = { requestsPerSecond: 5, openStreams: null, retentionDays: 0.25 };
    expect((await tenants.setLimits('limited', limits, [], PLATFORM_ACTOR))?.limits).toEqual(limits);
    const all = [{ weight: 2 }, { bodyBytes: 999_999_999_999_999 }, { runsAtOnce: 3 }];
    await Promise.all(all.map((one) => tenants.setLimits('limited', one, [], PLATFORM_ACTOR)));
    const changed = await tenants.setLimits(
      'limited',
      { weight: 7 },
      ['openStreams', 'runsAtOnce', 'eventBytes'],
      PLATFORM_ACTOR,
    );
    expect(changed?.limits).toEqual({
      requestsPerSecond: 5,
      retentionDays: 0.25,
      weight: 7,
      bodyBytes: 999_999_999_999_999,
    });
    expect(await tenants.setLimits('nobody', limits, [], PLATFORM_ACTOR)).toBeUndefined();
  });

  it('that are suspended, deleted or unknown are distinguished from those that are called', async () => {
    const [active, suspended, deleting] = await Promise.all(
      ['active', 'to-suspend', 'to-delete'].map((slug) => tenants.create(slug, PLATFORM_ACTOR)),
    );
    await tenants.suspend('to-suspend', null, PLATFORM_ACTOR);
    await tenants.markDeleting('to-delete', PLATFORM_ACTOR);
    const ids = [active, suspended, deleting].map((tenant) => tenant?.id ?? '');
    const unknown = randomUUID();
    const inactive = await tenants.inactive([...ids, unknown]);
    expect(inactive.toSorted()).toEqual([...ids.slice(1), unknown].toSorted());
    expect(await tenants.inactive([])).toEqual([]);
    await tenants.resume('to-suspend', PLATFORM_ACTOR);
    expect(await tenants.inactive(ids)).toEqual(ids.slice(2));
  });

  it('cannot have a slug twice', async () => {
    await tenants.create('twice', PLATFORM_ACTOR);
    const again = tenants.create('twice', PLATFORM_ACTOR);
    await expect(again).rejects.toThrow(NameTakenError);
    await expect(again).rejects.toThrow("The tenant 'twice' already exists");
  });
});

describe('tokens', () => {
  it('are found by their hash, and revoked by id or prefix within the tenant', async () => {
    const tenantId = (await tenants.create(`t-${randomUUID()}`, PLATFORM_ACTOR)).id;
    const expiresAt = new Date('2030-01-01T00:00:00.123Z');
    const input = {
      tenantId,
      name: 'ci',
      hash: randomUUID(),
      prefix: 'bt_abc',
      scopes: ['tasks:read' as const],
      agents: [],
      requestsPerSecond: null,
    };
    const token = await tokens.create({ ...input, expiresAt }, PLATFORM_ACTOR);
    expect(token).toMatchObject({ tenantId, name: 'ci', scopes: ['tasks:read'], expiresAt, revokedAt: null });
    expect(token).not.toHaveProperty('hash');
    expect((await tokens.byHashes([input.hash])).get(input.hash)).toEqual(token);
    expect((await tokens.byHashes(['other'])).get('other')).toBeUndefined();
    expect(await tokens.revoke(randomUUID(), token.id, PLATFORM_ACTOR)).toBeUndefined();
    expect(await tokens.revoke(tenantId, 'bt_xyz', PLATFORM_ACTOR)).toBeUndefined();
    const revoked = await tokens.revoke(tenantId, 'bt_abc', PLATFORM_ACTOR);
    expect(revoked?.revokedAt).toBeInstanceOf(Date);
    expect(await tokens.revoke(tenantId, token.id, PLATFORM_ACTOR)).toEqual(revoked);
    expect(await tokens.list(tenantId)).toEqual([revoked]);
  });
});

describe('a tenant’s own agents', () => {
  const make = async (slug = 'mine') => {
    const { id: tenantId } = await tenants.create(`t-${randomUUID()}`, PLATFORM_ACTOR);
    return { tenantId, ...(await entries.create(newAgent(tenantId, slug, 'first'), PLATFORM_ACTOR)) };
  };
  const content = (name: string, enabled = true) => ({
    definition: definition(name),
    enabled,
    by: 'token:1',
  });

  it('get a version with each write, with its content, time and actor', async () => {
    const first = await make();
    const second = await entries.change(first, content('second', false), PLATFORM_ACTOR);
    expect(second).toMatchObject({ id: first.id, version: 2, status: 'disabled' });
    expect(await agents.find(first.tenantId, 'mine')).toMatchObject({ version: 2, status: 'disabled' });
    const third = await entries.change({ ...first, version: 2 }, content('third'), PLATFORM_ACTOR);
    expect(third).toMatchObject({ version: 3, definition: definition('third') });
    expect(third).not.toHaveProperty('status');
    const versions = await entries.versions(first.tenantId, first.id, 10);
    expect(versions).toMatchObject([
      { version: 3, by: 'token:1', definition: definition('third'), enabled: true },
      { version: 2, by: 'token:1', definition: definition('second'), enabled: false },
      { version: 1, by: 'operator', definition: definition('first'), createdAt: first.createdAt },
    ]);
    expect(await entries.versions(first.tenantId, first.id, 1, 3)).toEqual([versions[1]]);
  });

  it('keep their last hundred versions', async () => {
    const first = await make();
    for (let version = 1; version <= 101; version++) {
      await entries.change({ ...first, version }, content(`after ${version}`), PLATFORM_ACTOR);
    }
    const kept = await entries.versions(first.tenantId, first.id, 200);
    expect(kept.map(({ version }) => version)).toEqual(Array.from({ length: 100 }, (_, i) => 102 - i));
  });

  it('are a thousand at the most, however many are made at the same time', async () => {
    const { id } = await tenants.create(`t-${randomUUID()}`, PLATFORM_ACTOR);
    const sample = await entries.create(newAgent(id, 'first', 'first'), PLATFORM_ACTOR);
    await catalog.run(
      (prisma) => prisma.$executeRaw`
        INSERT INTO agents (tenant_id, id, slug, definition, updated_at)
        SELECT a.tenant_id, gen_random_uuid(), 'agent-' || n, a.definition, now()
        FROM agents a, generate_series(1, 997) n WHERE a.tenant_id = ${id}::uuid AND a.id = ${sample.id}::uuid`,
    );
    const made = await Promise.allSettled(
      Array.from({ length: 6 }, (_, i) => entries.create(newAgent(id, `last-${i}`, 'x'), PLATFORM_ACTOR)),
    );
    expect(made.filter(({ status }) => status === 'fulfilled')).toHaveLength(2);
    const [refused] = made.filter((one) => one.status === 'rejected');
    expect(refused?.reason).toMatchObject({ name: 'LimitReachedError', limit: 'agents', max: 1000 });
  });

  it('are changed by one of many who have seen the same version', async () => {
    const first = await make();
    const names = Array.from({ length: 8 }, (_, i) => `by ${i}`);
    const changed = await Promise.all(
      names.map((name) => entries.change(first, content(name), PLATFORM_ACTOR)),
    );
    expect(changed.filter((entry) => entry !== undefined)).toHaveLength(1);
    expect(await entries.versions(first.tenantId, first.id, 10)).toHaveLength(2);
    expect(await entries.remove(first, PLATFORM_ACTOR)).toBe(false);
  });

  it('never have a version that is erased and gets the label next at the same time', async () => {
    const { tenantId, id } = await make();
    await entries.change({ tenantId, id, version: 1 }, content('second'), PLATFORM_ACTOR);
    const { both } = await catalog.changeAcross(tenantId, async (prisma) => {
      await prisma.$executeRaw`SELECT FROM agents WHERE id = ${id}::uuid FOR UPDATE`;
      let ended = 0;
      const changes = [
        entries.eraseVersion({ tenantId, id, version: 1 }, 'mine', PLATFORM_ACTOR).finally(() => ended++),
        entries
          .setNext({ tenantId, id, share: 50, failures: 5, version: 1 }, PLATFORM_ACTOR)
          .finally(() => ended++),
      ] as const;
      const waiting = () =>
        prisma.$executeRaw`SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`;
      while (ended + (await waiting()) < changes.length);
      return { both: Promise.all(changes) };
    });
    const [erased, next] = await both;
    expect(erased).toBe(next === undefined);
    const [first] = await entries.versions(tenantId, id, 1, 2);
    expect(first?.erasedAt === null).toBe(!erased);
  });

  it('are made once, however many make them at the same time', async () => {
    const { id } = await tenants.create(`t-${randomUUID()}`, PLATFORM_ACTOR);
    const made = await Promise.allSettled(
      Array.from({ length: 8 }, () => entries.create(newAgent(id, 'race', 'x'), PLATFORM_ACTOR)),
    );
    expect(made.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
  });

  it('that are deleted are kept for their tasks, and their slug is free', async () => {
    const first = await make();
    const { tenantId } = first;
    expect(await entries.remove(first, PLATFORM_ACTOR)).toBe(true);
    expect(await entries.change(first, content('late'), PLATFORM_ACTOR)).toBeUndefined();
    expect(await entries.find(tenantId, first.id)).toBeUndefined();
    expect(await agents.list(tenantId)).toEqual([]);
    for (const name of [first.id, 'mine']) {
      expect(await agents.find(tenantId, name)).toBeUndefined();
      expect(await agents.findIncludingDeleted(tenantId, name)).toMatchObject({
        id: first.id,
        status: 'deleted',
      });
    }
    const again = await entries.create(newAgent(tenantId, 'mine', 'again'), PLATFORM_ACTOR);
    expect(again).toMatchObject({ version: 1 });
    expect(await agents.findIncludingDeleted(tenantId, 'mine')).toMatchObject({ id: again.id });
    expect(await agents.findIncludingDeleted(tenantId, first.id)).toMatchObject({ status: 'deleted' });
  });

  it('that are deleted go for good when no task names them any more', async () => {
    const [idle, busy] = [await make(), await make()];
    for (const { tenantId, id } of [idle, busy]) {
      await catalog.run(
        (prisma) => prisma.$executeRaw`
          UPDATE agents SET deleted_at = now() - interval '2 hours' WHERE tenant_id = ${tenantId}::uuid AND id = ${id}::uuid`,
      );
    }
    await catalog.run(
      (prisma) => prisma.$executeRaw`
        INSERT INTO tasks (tenant_id, id, agent_id, context_id, context_key, state, status, status_at, last_sequence, artifacts_sequence)
        VALUES (${busy.tenantId}::uuid, ${randomUUID()}::uuid, ${busy.id}, 'c', ${randomUUID()}::uuid, 1, '{}', now(), 1, 1)`,
    );
    for (const { tenantId } of [idle, busy])
      await entries.create(newAgent(tenantId, 'other', 'x'), PLATFORM_ACTOR);
    expect(await agents.findIncludingDeleted(idle.tenantId, idle.id)).toBeUndefined();
    expect(await entries.versions(idle.tenantId, idle.id, 10)).toEqual([]);
    expect(await agents.findIncludingDeleted(busy.tenantId, busy.id)).toMatchObject({ status: 'deleted' });
  });
});

describe('agents', () => {
  it('of a tenant are its own, and hide installed ones of the same slug', async () => {
    const [one, two] = [
      await tenants.create('one', PLATFORM_ACTOR),
      await tenants.create('two', PLATFORM_ACTOR),
    ];
    await agents.install('helper', definition('installed'), null);
    const {
      createdAt: _,
      updatedAt: __,
      ...own
    } = await entries.create(newAgent(one.id, 'helper', 'own'), PLATFORM_ACTOR);
    expect(own).toMatchObject({
      slug: 'helper',
      origin: 'catalog',
      version: 1,
      definition: definition('own'),
    });
    expect(await agents.find(one.id, 'helper')).toEqual(own);
    expect(await agents.find(one.id, own.id)).toEqual(own);
    expect(await agents.find(two.id, own.id)).toBeUndefined();
    expect(await agents.find(two.id, 'help\0er')).toBeUndefined();
    expect(await agents.find(two.id, 'helper')).toMatchObject({ origin: 'installed' });
    // Others choose by these. The settings stay where they are.
    const { name, description, skills } = own.definition;
    expect(await agents.list(one.id)).toEqual([{ ...own, definition: { name, description, skills } }]);
    await expect(entries.create(newAgent(one.id, 'helper', 'x'), PLATFORM_ACTOR)).rejects.toThrow(
      NameTakenError,
    );
    expect(await entries.remove({ ...own, tenantId: two.id }, PLATFORM_ACTOR)).toBe(false);
    expect(await entries.remove({ ...own, tenantId: one.id }, PLATFORM_ACTOR)).toBe(true);
    expect(await agents.find(one.id, 'helper')).toMatchObject({ definition: definition('installed') });
  });

  it('that take messages have their slugs in a list, each tenant its own', async () => {
    const [one, two] = [
      await tenants.create('slugs-one', PLATFORM_ACTOR),
      await tenants.create('slugs-two', PLATFORM_ACTOR),
    ];
    await agents.install('open-to-one', definition('installed'), ['slugs-one']);
    await agents.install('hidden-by-one', definition('installed'), null);
    await entries.create(newAgent(one.id, 'mine', 'x'), PLATFORM_ACTOR);
    await entries.create({ ...newAgent(one.id, 'hidden-by-one', 'x'), enabled: false }, PLATFORM_ACTOR);
    const gone = await entries.create(newAgent(one.id, 'gone', 'x'), PLATFORM_ACTOR);
    await entries.remove({ ...gone, tenantId: one.id }, PLATFORM_ACTOR);
    const known = ['open-to-one', 'hidden-by-one', 'mine', 'gone'];
    const slugsOf = async (tenantId: string) =>
      (await agents.slugs(tenantId)).filter((slug) => known.includes(slug)).sort();
    expect(await slugsOf(one.id)).toEqual(['mine', 'open-to-one']);
    expect(await slugsOf(two.id)).toEqual(['hidden-by-one']);
  });

  it('that are installed keep their id, and are there for the tenants they name', async () => {
    const [named, other] = [
      await tenants.create('named', PLATFORM_ACTOR),
      await tenants.create('other', PLATFORM_ACTOR),
    ];
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
    // The time of a refusal does not reveal that the agent exists.
    expect(await queries('limited')).toBe(await queries('unknown'));
    expect(await queries(after!.id)).toBe(await queries(randomUUID()));
    await agents.install('limited', definition('v2'), []);
    expect(await agents.find(named.id, 'limited')).toBeUndefined();
    await agents.install('limited', definition('v2'), null);
    expect(await agents.find(other.id, after!.id)).toBeDefined();
  });
});

it('a catalog that cannot be reached is an error to try again after', async () => {
  const nowhere = new CatalogClient('postgres://nobody@127.0.0.1:1/none');
  const error: unknown = await new TenantStore(nowhere).list().catch((reason: unknown) => reason);
  expect(isTransient(error)).toBe(true);
  expect((error as Error).message).toMatch(/^Postgres is not available/);
  await nowhere.close();
});

it('reads and notes of calls and runs need no Prisma, and have the same results', async () => {
  const { id: tenantId } = await tenants.create('swift', PLATFORM_ACTOR);
  const secret = { hash: 'the hash', prefix: 'the prefix' };
  const rights = { name: 'ci', scopes: [], agents: [], requestsPerSecond: null, expiresAt: null };
  const token = await tokens.create({ ...secret, ...rights, tenantId }, PLATFORM_ACTOR);
  const agent = await entries.create(newAgent(tenantId, 'calm', 'one'), PLATFORM_ACTOR);
  await catalog.run(
    (prisma) =>
      prisma.$executeRaw`UPDATE api_tokens SET scopes = NULL, agents = NULL WHERE id = ${token.id}::uuid`,
  );
  const calls = new CatalogClient(testDatabase.url);
  const prisma = jest.spyOn(calls, 'prisma', 'get');
  const inUse = new TokenStore(calls);
  const at = new Date('2026-11-22T18:00:00Z');
  await inUse.noteUses([{ id: token.id, tenantId, at }]);
  expect((await inUse.byHashes([secret.hash])).get(secret.hash)).toEqual({ ...token, lastUsedAt: at });
  const swift = { ...(await tenants.bySlug('swift')), hasSpendingCaps: false };
  expect(await new TenantStore(calls).byId(tenantId)).toEqual(swift);
  expect(await new AgentCatalogStore(calls).find(tenantId, 'calm')).toEqual(agent);
  expect(await new AgentCatalogStore(calls).find(tenantId, agent.id)).toEqual(agent);
  const { id: other } = await tenants.create('slow', PLATFORM_ACTOR);
  expect(await new AgentCatalogStore(calls).find(other, agent.id)).toBeUndefined();
  const reads = new AgentStore(calls);
  await reads.install('ready', definition('made'), ['swift']);
  const taken = [await reads.find(tenantId, 'calm'), await reads.find(tenantId, 'ready')];
  expect(taken).toMatchObject([{ id: agent.id }, { definition: definition('made') }]);
  expect(await reads.find(other, 'ready')).toBeUndefined();
  expect(await reads.slugs(tenantId)).toEqual(expect.arrayContaining(['calm', 'ready']));
  expect(await reads.list(tenantId)).toHaveLength((await reads.page(tenantId, { limit: 100 })).length);
  expect(await reads.own(tenantId)).toHaveLength(1);
  expect(await new HostStore(calls).find('nowhere.example')).toBeUndefined();
  expect(await new SecretStore(calls).find({ tenantId, name: 'none' })).toBeUndefined();
  expect(prisma).not.toHaveBeenCalled();
  await calls.close();
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
