import { PLATFORM_ACTOR } from './audit-records.js';
import { randomUUID } from 'node:crypto';
import { createDatabase, type TestDatabase } from '../../../../test/support/index.js';
import {
  type Actor,
  type AuditRecord,
  AuditStore,
  CatalogClient,
  Database,
  HostStore,
  PLATFORM,
  RetentionStore,
  SecretStore,
  TenantStore,
  TokenStore,
} from '../index.js';
import { sourceOf } from './audit-sql.js';

let testDatabase: TestDatabase;
let database: Database;
let catalog: CatalogClient;
let audit: AuditStore;
let heard: AuditRecord[];

beforeAll(async () => {
  testDatabase = await createDatabase();
  const onAudit = (record: AuditRecord) => void heard.push(record);
  database = new Database({ url: testDatabase.url, poolSize: 2, onAudit });
  catalog = new CatalogClient(testDatabase.url, { poolSize: 2, onAudit });
  audit = new AuditStore(database);
});
beforeEach(() => {
  heard = [];
});
afterAll(async () => {
  await Promise.all([catalog.close(), database.close()]);
  await testDatabase.drop();
});

const BY: Actor = { kind: 'user', key: 'user:someone', address: '192.0.2.77', requestId: 'r-1' };
const SEALED = { keyId: 'k', nonce: Buffer.from('n'), ciphertext: Buffer.from('very secret') };
const all = (tenantId: string, query: object = {}) => audit.list({ tenantId, limit: 100, ...query });
const setSecret = (tenantId: string, name: string) =>
  audit.write(tenantId, { action: 'secret.set', target: { kind: 'secret', name }, by: BY });
const SYSTEM = `SET LOCAL baton.tenant = 'system'`;
const inSystem = (...statements: string[]) =>
  database.systemQueries([SYSTEM, ...statements].map((text) => [{ text }, []]));

describe('a change and its record', () => {
  it('are written together, and say who, from where, what and never a value', async () => {
    const tenant = await new TenantStore(catalog).create('acme', BY);
    await new SecretStore(catalog).put({ tenantId: tenant.id, name: 'key' }, SEALED, [], [], BY);
    const [set, created] = await all(tenant.id);
    expect(set).toEqual({
      tenantId: tenant.id,
      id: expect.any(String),
      at: expect.any(Date),
      actor: { kind: 'user', key: 'user:someone', name: null },
      source: '192.0.2.0/24',
      requestId: 'r-1',
      action: 'secret.set',
      target: { kind: 'secret', name: 'key' },
      outcome: 'ok',
      detail: { origins: [] },
    });
    expect(created).toMatchObject({ action: 'tenant.create', target: { kind: 'tenant', name: 'acme' } });
    expect(heard).toEqual([created, set]);
  });

  it('are both gone if one of them fails', async () => {
    const { id } = await new TenantStore(catalog).create('rolled-back', PLATFORM_ACTOR);
    heard = [];
    const failing = catalog.change(id, async (prisma, record) => {
      await prisma.tenant.update({ where: { id }, data: { defaultAgent: 'lost' } });
      await record({ action: 'tenant.update', target: { kind: 'tenant', name: 'lost' }, by: BY });
      throw new Error('lost');
    });
    await expect(failing).rejects.toThrow('lost');
    const unwritable = catalog.change(id, async (prisma, record) => {
      await prisma.tenant.update({ where: { id }, data: { defaultAgent: 'lost' } });
      await record({ action: 'tenant.update', target: null as never, by: BY });
    });
    await expect(unwritable).rejects.toThrow();
    expect(await all(id, { action: 'tenant.update' })).toEqual([]);
    expect(await new TenantStore(catalog).byId(id)).toMatchObject({ defaultAgent: 'index' });
    expect(heard).toEqual([]);
  });

  it('are not written where nothing changes', async () => {
    const { id } = await new TenantStore(catalog).create('quiet', PLATFORM_ACTOR);
    await new SecretStore(catalog).remove({ tenantId: id, name: 'none' }, BY);
    await new TokenStore(catalog).revoke(id, 'baton_none', BY);
    await new HostStore(catalog).unbind('none.example', BY);
    expect((await all(id)).map(({ action }) => action)).toEqual(['tenant.create']);
  });

  it('name the token as it was called', async () => {
    const { id: tenantId } = await new TenantStore(catalog).create('tokens', PLATFORM_ACTOR);
    const token = await new TokenStore(catalog).create(
      {
        tenantId,
        name: 'CI',
        hash: randomUUID(),
        prefix: 'baton_abc',
        scopes: [],
        expiresAt: null,
        agents: [],
        requestsPerSecond: null,
      },
      PLATFORM_ACTOR,
    );
    const by: Actor = { kind: 'token', key: `token:${token.id}`, address: '::1' };
    await new TokenStore(catalog).revoke(tenantId, token.id, by);
    expect((await all(tenantId))[0]).toMatchObject({
      actor: { kind: 'token', key: `token:${token.id}`, name: 'CI (baton_abc)' },
      source: 'loopback',
      action: 'token.revoke',
      target: { kind: 'token', name: token.id },
    });
  });

  it('hold what a caller chose, however long and strange', async () => {
    const tenantId = randomUUID();
    const target = { kind: 'agent', name: `\0${'n'.repeat(1_000)}` } as const;
    await audit.write(tenantId, { action: 'agent.update', target, by: BY, detail: { nul: '\0', ok: 1 } });
    // What a model names a tool call stands in the record of an approval.
    const escape = { name: String.raw`\u0000`, path: String.raw`a\\u0000` };
    await audit.write(tenantId, { action: 'agent.update', target, by: BY, detail: { escape } });
    await audit.write(tenantId, {
      action: 'agent.update',
      target,
      by: BY,
      detail: { big: 'x'.repeat(5_000) },
    });
    const [large, escaped, strange] = await all(tenantId);
    expect(escaped?.detail).toEqual({ escape });
    expect(strange).toMatchObject({ target: { name: 'n'.repeat(256) }, detail: { nul: '', ok: 1 } });
    expect(large?.detail).toEqual({ truncated: true });
  });
});

describe('the log', () => {
  it('is append-only, also for the scope of all tenants', async () => {
    const tenantId = randomUUID();
    await setSecret(tenantId, 'kept');
    for (const statement of [
      `UPDATE audit_records SET actor = 'nobody'`,
      `DELETE FROM audit_records`,
      `TRUNCATE audit_records`,
      `SET LOCAL baton.audit = 'delete'; UPDATE audit_records SET actor = 'nobody'`,
      `SET LOCAL baton.audit = 'delete'; TRUNCATE audit_records`,
    ]) {
      await expect(inSystem(...statement.split('; '))).rejects.toThrow('audit_records is append-only');
    }
    expect(await all(tenantId)).toHaveLength(1);
  });

  it('shows a tenant its own records only, and operators those of all, and of the platform', async () => {
    const [mine, theirs] = [randomUUID(), randomUUID()];
    await setSecret(mine, 'mine');
    await setSecret(theirs, 'theirs');
    await audit.write(PLATFORM, {
      action: 'secret.rotate',
      target: { kind: 'database', name: 'secrets' },
      by: BY,
    });
    expect((await all(mine)).map(({ target }) => target.name)).toEqual(['mine']);
    const seen = await audit.list({ limit: 3 });
    expect(seen.map(({ tenantId }) => tenantId)).toEqual([PLATFORM, theirs, mine]);
  });

  it('is read latest first, also when many records share a millisecond', async () => {
    const tenantId = randomUUID();
    const names = Array.from({ length: 20 }, (_, number) => String(number));
    for (const name of names) await setSecret(tenantId, name);
    expect((await all(tenantId)).map(({ target }) => target.name)).toEqual(names.reverse());
  });

  it('is filtered by action and time, and read page by page', async () => {
    const tenantId = randomUUID();
    for (const name of ['a', 'b', 'c']) await setSecret(tenantId, name);
    await audit.write(tenantId, { action: 'agent.update', target: { kind: 'agent', name: 'd' }, by: BY });
    const names = (records: AuditRecord[]) => records.map(({ target }) => target.name);
    expect(names(await all(tenantId, { action: 'secret' }))).toEqual(['c', 'b', 'a']);
    expect(names(await all(tenantId, { action: 'agent.update' }))).toEqual(['d']);
    expect(await all(tenantId, { action: 'agent.upd' })).toEqual([]);
    const pages: string[] = [];
    for (let after: AuditRecord | undefined; ;) {
      const page: AuditRecord[] = await all(tenantId, { limit: 2, after });
      if (page.length === 0) break;
      pages.push(...names(page));
      after = page.at(-1);
    }
    expect([...pages]).toEqual(['d', 'c', 'b', 'a']);
    const [{ at } = { at: new Date() }] = await all(tenantId);
    expect(await all(tenantId, { from: new Date(at.getTime() + 1) })).toEqual([]);
    expect(await all(tenantId, { until: new Date(at.getTime() + 1) })).toHaveLength(4);
  });

  it('loses only what is older than its retention, slice by slice', async () => {
    const tenantId = randomUUID();
    await inSystem(
      `INSERT INTO audit_records (tenant_id, id, at, actor_kind, actor, action, target_kind, target)
       SELECT '${tenantId}', gen_random_uuid(), now() - n * interval '1 day', 'platform', 'platform', 'agent.update', 'agent', 'a'
       FROM generate_series(1, 5) n`,
    );
    const retention = new RetentionStore(database);
    expect(await retention.dropAudit(2.5, 2)).toEqual({ auditRecords: 2 });
    expect(await retention.dropAudit(2.5, 2)).toEqual({ auditRecords: 1 });
    expect(await retention.dropAudit(2.5, 2)).toEqual({ auditRecords: 0 });
    expect(await all(tenantId)).toHaveLength(2);
  });
});

it.each([
  ['192.0.2.77', '192.0.2.0/24'],
  ['::ffff:192.0.2.77', '192.0.2.0/24'],
  ['127.0.0.1', 'loopback'],
  ['::1', 'loopback'],
  ['2001:db8:1:2:3:4:5:6', '2001:db8:1::/48'],
  ['not an address', 'unknown'],
])('of the address %s the log has %s', (ip, source) => {
  expect(sourceOf(ip)).toBe(source);
});
