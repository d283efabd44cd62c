import { loadEnvironment } from '@baton/config';
import { CatalogClient, TenantStore, TokenStore, PLATFORM_ACTOR } from '@baton/database';
import { createMessaging, type Messaging } from '@baton/messaging';
import { Logger } from '@baton/telemetry';
import { createDatabase, createRedisUrl, DRIVERS, type TestDatabase } from '../../../test/support/index.js';
import { until } from '../../../test/support/until.js';
import { refusedAs } from './token.fixture.js';
import { TokenService } from './token.service.js';

/** What one process has: connections of its own, and a cache that would hold a token far longer than a test. */
interface Process {
  tokens: TokenService;
  messaging: Messaging;
  catalog: CatalogClient;
}

describe.each(DRIVERS)('tokens of two processes on %s', (driver) => {
  let database: TestDatabase;
  let tenants: TenantStore;
  let one: Process;
  let other: Process;

  beforeAll(async () => {
    database = await createDatabase();
    const redisUrl = driver === 'redis' ? await createRedisUrl() : undefined;
    const start = async (): Promise<Process> => {
      const environment = loadEnvironment({ DATABASE_URL: database.url, TOKEN_CACHE_MS: '3600000' });
      const catalog = new CatalogClient(database.url);
      const log = Logger.silent();
      const messaging = createMessaging({ redisUrl, databaseUrl: database.url, log });
      await messaging.start(5000);
      const tokens = new TokenService(new TokenStore(catalog), messaging, log, environment);
      await tokens.onModuleInit();
      return { tokens, messaging, catalog };
    };
    [one, other] = await Promise.all([start(), start()]);
    tenants = new TenantStore(one.catalog);
  });

  afterAll(async () => {
    for (const { tokens, messaging, catalog } of [one, other]) {
      await tokens.onModuleDestroy();
      await messaging.close();
      await catalog.close();
    }
    await database.drop();
  });

  const issue = async (slug: string, expiresAt: Date | null = null) => {
    const tenant = await tenants.create(slug, PLATFORM_ACTOR);
    const issued = await one.tokens.issue(
      {
        tenantId: tenant.id,
        name: 'ci',
        scopes: ['agents:call', 'tasks:read'],
        expiresAt,
      },
      PLATFORM_ACTOR,
    );
    return { tenant, ...issued };
  };

  it('a token issued in one is good in the other', async () => {
    const { tenant, secret, token } = await issue('issued');
    expect(await other.tokens.verify(secret)).toEqual({
      ok: true,
      caller: {
        tenantId: tenant.id,
        principal: { kind: 'token', key: `token:${token.id}` },
        scopes: ['agents:call', 'tasks:read'],
        credential: expect.any(String),
      },
    });
    expect(await other.tokens.verify(`${secret.slice(0, -1)}${secret.endsWith('A') ? 'B' : 'A'}`)).toEqual({
      ok: false,
      reason: 'unknown',
    });
  });

  it('a token that has expired is refused by both', async () => {
    const { secret, token } = await issue('expired', new Date(Date.now() - 1));
    for (const { tokens } of [one, other]) {
      expect(await tokens.verify(secret)).toEqual(refusedAs('expired', token));
    }
  });

  it('a token revoked in one is refused by the other though it is in its cache for an hour', async () => {
    const { tenant, secret, token } = await issue('revoked');
    expect((await other.tokens.verify(secret)).ok).toBe(true);
    expect((await one.tokens.revoke(tenant.id, token.prefix, PLATFORM_ACTOR))?.id).toBe(token.id);
    expect(await one.tokens.verify(secret)).toEqual(refusedAs('revoked', token));
    await until(async () => !(await other.tokens.verify(secret)).ok);
    expect(await other.tokens.verify(secret)).toEqual(refusedAs('revoked', token));
  });

  it('another tenant cannot revoke it', async () => {
    const { secret, token } = await issue('kept');
    const stranger = await tenants.create('stranger', PLATFORM_ACTOR);
    expect(await one.tokens.revoke(stranger.id, token.id, PLATFORM_ACTOR)).toBeUndefined();
    expect((await other.tokens.verify(secret)).ok).toBe(true);
  });
});
