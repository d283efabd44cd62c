import { loadEnvironment } from '@baton/config';
import { CatalogClient, IssuerStore, TenantStore, PLATFORM_ACTOR } from '@baton/database';
import { createMessaging, type Messaging } from '@baton/messaging';
import { Outbound } from '@baton/outbound';
import { Logger } from '@baton/telemetry';
import { ConnectProxy } from '../../../../test/support/connect-proxy.js';
import { createDatabase, type TestDatabase } from '../../../../test/support/index.js';
import { OpenIdProvider } from '../../../../test/support/open-id-provider.js';
import { JwtService } from './jwt.service.js';

const UNTRUSTED = 'the token is not signed by an issuer that is trusted here';

describe('tokens of a real OpenID provider', () => {
  let database: TestDatabase;
  let catalog: CatalogClient;
  let issuers: IssuerStore;
  let messaging: Messaging;
  let provider: OpenIdProvider;
  let acme: string;
  const stopping: (() => unknown)[] = [];

  beforeAll(async () => {
    database = await createDatabase();
    catalog = new CatalogClient(database.url);
    issuers = new IssuerStore(catalog);
    messaging = createMessaging({ databaseUrl: database.url, log: Logger.silent() });
    await messaging.start(10_000);
    acme = (await new TenantStore(catalog).create('acme', PLATFORM_ACTOR)).id;
  });
  beforeEach(async () => {
    provider = await OpenIdProvider.start();
  });
  afterEach(async () => {
    for (const stop of stopping.splice(0)) await stop();
    await provider.stop();
  });
  afterAll(async () => {
    await messaging.close();
    await catalog.close();
    await database.drop();
  });

  /** A process with caches of its own. */
  async function start(allow = ['127.0.0.1'], outboundProxy?: string): Promise<JwtService> {
    const outbound = new Outbound({ outboundAllow: allow, outboundProxy });
    const environment = loadEnvironment({ DATABASE_URL: database.url, TOKEN_CACHE_MS: '3600000' });
    const limits = { egress: () => Promise.resolve({ allow: [], deny: [] }) };
    const service = new JwtService(issuers, messaging, outbound, Logger.silent(), environment, limits);
    await service.onModuleInit();
    stopping.push(
      () => service.onModuleDestroy(),
      () => outbound.onApplicationShutdown(),
    );
    return service;
  }

  const trust = async ({ url: issuer }: OpenIdProvider, audience = 'baton') => {
    const result = await issuers.add(
      {
        tenantId: acme,
        issuer,
        audience,
        selector: null,
        jwksUrl: null,
        subjectClaim: 'sub',
        scopes: ['agents:call'],
        grants: [{ claim: 'groups', value: 'staff', scopes: ['tasks:read'] }],
        agents: [],
        requestsPerSecond: null,
      },
      PLATFORM_ACTOR,
    );
    if ('conflict' in result) throw new Error('the issuer is there already');
    return result.added;
  };

  it('are those of its users and of its machines, with the scopes that their claims give', async () => {
    await trust(provider);
    const service = await start();
    provider.terms.claims = { ada: { groups: ['staff'] } };
    const ada = await service.verify(await provider.userToken('ada'));
    expect(ada).toMatchObject({ tenantId: acme, scopes: ['agents:call', 'tasks:read'] });
    const again = await service.verify(await provider.userToken('ada'));
    expect(again.principal).toEqual(ada.principal);
    const machine = await service.verify(await provider.machineToken());
    expect(machine.scopes).toEqual(['agents:call']);
    expect(machine.principal).not.toEqual(ada.principal);
    provider.terms.audience = 'another';
    await expect(service.verify(await provider.machineToken())).rejects.toThrow('audience');
  });

  it('stay good while it rotates its keys, until it withdraws the old ones', async () => {
    await trust(provider);
    const service = await start();
    const before = await provider.machineToken();
    await service.verify(before);
    await provider.rotate();
    const after = await provider.machineToken();
    const many = [before, after, after, after, before].map((token) => service.verify(token));
    expect(await Promise.all(many)).toHaveLength(5);
    expect(provider.asked.filter((path) => path === '/jwks')).toHaveLength(2);
    await provider.rotate(false);
    const other = await start();
    await other.verify(await provider.machineToken());
    await expect(other.verify(before)).rejects.toThrow(UNTRUSTED);
  });

  it('stay valid while it does not answer, and no other request waits for it', async () => {
    const silent = await OpenIdProvider.start();
    stopping.push(() => silent.stop());
    await Promise.all([trust(provider), trust(silent)]);
    const service = await start();
    const token = await provider.machineToken();
    await service.verify(token);
    await provider.stop();
    await service.verify(token);
    await provider.listen();
    const waiting = await silent.machineToken();
    silent.hang();
    const first = service.verify(waiting).catch((error: unknown) => error);
    await service.verify(token);
    await silent.stop();
    expect(await first).toMatchObject({ kind: 'unavailable' });
  });

  it('are good in no process once it is removed', async () => {
    const { id } = await trust(provider);
    const service = await start();
    const token = await provider.machineToken();
    await service.verify(token);
    expect(await issuers.remove(acme, id, PLATFORM_ACTOR)).toBeDefined();
    // Its own message comes back last, after the cache has got it.
    const notified = new Promise<void>((resolve) => {
      void messaging.subscribeControl(() => resolve());
    });
    await messaging.publishControl({ type: 'issuers-changed', tenantId: acme, issuer: provider.url });
    await notified;
    await expect(service.verify(token)).rejects.toThrow(UNTRUSTED);
  });

  it('are verified with keys that come through the proxy of the operator', async () => {
    await trust(provider);
    const proxy = await ConnectProxy.start();
    stopping.push(() => proxy.stop());
    const service = await start(['127.0.0.1'], proxy.url);
    const token = await provider.machineToken();
    provider.asked.length = 0;
    await service.verify(token);
    expect(provider.asked).toContain('/jwks');
    expect([...new Set(proxy.asked)]).toEqual([new URL(provider.url).host]);
  });

  it('are not asked for at private addresses that the operator does not allow', async () => {
    await trust(provider);
    const service = await start([]);
    provider.asked.length = 0;
    const token = await provider.machineToken();
    await expect(service.verify(token)).rejects.toMatchObject({ kind: 'unavailable' });
    expect(provider.asked).toEqual(['/token']);
  });
});
