import { PLATFORM_ACTOR } from '../audit/audit-records.js';
import { randomUUID } from 'node:crypto';
import { Client } from 'pg';
import { createDatabase, type TestDatabase } from '../../../../test/support/index.js';
import { type ApiToken, CatalogClient, TenantStore, TokenStore } from '../index.js';

let database: TestDatabase;
let catalog: CatalogClient;
let tenants: TenantStore;
let tokens: TokenStore;

beforeAll(async () => {
  database = await createDatabase();
  catalog = new CatalogClient(database.url);
  tenants = new TenantStore(catalog);
  tokens = new TokenStore(catalog);
});
afterAll(async () => {
  await catalog.close();
  await database.drop();
});

describe('a token', () => {
  const make = async ({ expiresAt = null, ...of }: { expiresAt?: Date | null; tenantId?: string } = {}) => {
    const tenantId = of.tenantId ?? (await tenants.create(`t-${randomUUID()}`, PLATFORM_ACTOR)).id;
    const rights = { name: 'ci', scopes: [], agents: ['echo'], requestsPerSecond: 5, expiresAt };
    return tokens.create({ tenantId, ...rights, ...secret() }, PLATFORM_ACTOR);
  };
  const secret = () => ({ hash: randomUUID(), prefix: `baton_${randomUUID()}` });

  it('is found by its secret and by the one before its rotation', async () => {
    const { id, tenantId, prefix } = await make();
    const [first, second] = [secret(), secret()];
    const rotated = (await tokens.rotate(tenantId, id, first, { overlapMs: 60_000 }, PLATFORM_ACTOR))!;
    expect(rotated).toMatchObject({ id, prefix: first.prefix, previousPrefix: prefix, expiresAt: null });
    const until = rotated.previousUntil!;
    expect(Math.abs(until.getTime() - Date.now() - 60_000)).toBeLessThan(30_000);
    expect((await tokens.byHashes([first.hash])).get(first.hash)).toEqual(rotated);
    expect(await tokens.find(tenantId, prefix)).toEqual(rotated);
    await tokens.rotate(tenantId, id, second, { overlapMs: 0 }, PLATFORM_ACTOR);
    const found = await tokens.byHashes([first.hash, second.hash, 'none']);
    expect([...found.keys()].sort()).toEqual([first.hash, second.hash].sort());
    expect(found.get(first.hash)!.secretUntil!.getTime()).toBeLessThanOrEqual(Date.now());
    expect(found.get(second.hash)).not.toHaveProperty('secretUntil');
    expect(await tokens.rotate(randomUUID(), id, secret(), { overlapMs: 0 }, PLATFORM_ACTOR)).toBeUndefined();
    await tokens.revoke(tenantId, id, PLATFORM_ACTOR);
    expect(await tokens.rotate(tenantId, id, secret(), { overlapMs: 0 }, PLATFORM_ACTOR)).toBeUndefined();
    expect(await tokens.change(tenantId, id, { name: 'other' }, PLATFORM_ACTOR)).toBeUndefined();
  });

  it('that gets more time with its rotation gives none to the secret before', async () => {
    const soon = new Date(Date.now() + 1_000);
    const { id, tenantId } = await make({ expiresAt: soon });
    const later = new Date(Date.now() + 86_400_000);
    const rotated = await tokens.rotate(
      tenantId,
      id,
      secret(),
      { overlapMs: 3_600_000, expiresAt: later },
      PLATFORM_ACTOR,
    );
    expect(rotated).toMatchObject({ expiresAt: later, previousUntil: soon });
  });

  it('has the time of its last use, and its scopes', async () => {
    const token = await make();
    const [mine, theirs] = [token, await make()];
    const at = new Date('2030-01-01T00:00:00.123Z');
    const use = ({ id, tenantId }: typeof mine, time: Date) => ({ id, tenantId, at: time });
    await tokens.noteUses([use(mine, at), use(theirs, new Date(0)), { ...use(mine, at), id: randomUUID() }]);
    await tokens.noteUses([use(mine, new Date(1))]);
    expect(await tokens.find(mine.tenantId, mine.id)).toEqual({ ...mine, lastUsedAt: at });
    const rights = { name: 'new', agents: [], requestsPerSecond: null, scopes: ['admin' as const] };
    expect(await tokens.change(mine.tenantId, mine.id, rights, PLATFORM_ACTOR)).toEqual({
      ...mine,
      lastUsedAt: at,
      ...rights,
    });
    expect(await tokens.find(theirs.tenantId, theirs.id)).toMatchObject({
      lastUsedAt: new Date(0),
      name: 'ci',
    });
  });

  it('is locked in the order of its id when its use is stored: processes do not deadlock', async () => {
    const [first, last] = [await make(), await make()].toSorted((one, other) =>
      one.id < other.id ? -1 : 1,
    ) as [ApiToken, ApiToken];
    const client = new Client({ connectionString: database.url });
    await client.connect();
    try {
      const lock = async ({ id }: ApiToken): Promise<unknown> =>
        client.query('SELECT FROM api_tokens WHERE id = $1 FOR UPDATE NOWAIT', [id]);
      await client.query(`BEGIN; SET LOCAL baton.tenant = 'system'`);
      await lock(first);
      const at = new Date();
      const stored = tokens.noteUses([last, first].map(({ id, tenantId }) => ({ id, tenantId, at })));
      const waiting = `SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`;
      while ((await client.query(waiting)).rows.length === 0);
      await lock(last);
      await client.query('COMMIT');
      await stored;
      expect(await tokens.find(last.tenantId, last.id)).toMatchObject({ lastUsedAt: at });
    } finally {
      await client.end();
    }
  });

  it('is listed in pages, the newest first, also one that an earlier release made', async () => {
    const { tenantId } = await make();
    for (let i = 0; i < 3; i += 1) await make({ tenantId });
    await catalog.prisma.$executeRaw`
      INSERT INTO api_tokens (tenant_id, id, name, hash, prefix, scopes)
      VALUES (${tenantId}::uuid, ${randomUUID()}::uuid, 'old', ${randomUUID()}, 'old', '{admin}')`;
    const all = await tokens.list(tenantId);
    expect(all.find(({ name }) => name === 'old')).toMatchObject({ agents: [], requestsPerSecond: null });
    const pages: ApiToken[] = [];
    for (let after: ApiToken | undefined; ;) {
      const page = await tokens.list(tenantId, { limit: 2, ...(after && { after }) });
      if (page.length === 0) break;
      pages.push(...page);
      after = page.at(-1);
    }
    expect(pages).toEqual(all);
    expect(all).toHaveLength(5);
  });
});
