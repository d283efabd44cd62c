import { loadEnvironment } from '@baton/config';
import { CatalogClient, TenantStore } from '@baton/database';
import { createDatabase, type TestDatabase } from '../../../test/support/index.js';
import { prepareDemo } from './demo-tenant.js';
import type { Home } from './home.js';

describe('the tenant of npm start', () => {
  let database: TestDatabase;
  let catalog: CatalogClient;

  beforeAll(async () => {
    database = await createDatabase();
    catalog = new CatalogClient(database.url);
  });
  afterAll(async () => {
    await catalog.close();
    await database.drop();
  });

  const prepare = async () => {
    const environment = loadEnvironment({ DATABASE_URL: database.url, LIMIT_OPEN_STREAMS: '1' });
    const home: Pick<Home, 'readDemo' | 'writeDemo'> = {
      readDemo: () => undefined,
      writeDemo: () => undefined,
    };
    await prepareDemo(environment, home as Home);
    return (await new TenantStore(catalog).bySlug('demo'))?.limits;
  };

  it('has no limits whatever the environment sets, until the operator sets some', async () => {
    const none = {
      requestsPerSecond: null,
      runsAtOnce: null,
      tasksWaiting: null,
      openStreams: null,
      bodyBytes: null,
      storedBytes: null,
      tokensPerDay: null,
      retentionDays: null,
      guestRequestsPerSecond: null,
      guestMessagesPerDay: null,
    };
    expect(await prepare()).toEqual(none);
    const tenants = new TenantStore(catalog);
    await tenants.setLimits('demo', { openStreams: 3 });
    expect(await prepare()).toEqual({ ...none, openStreams: 3 });
    await tenants.setLimits('demo', {}, Object.keys(none) as (keyof typeof none)[]);
    expect(await prepare()).toEqual(none);
  });
});
