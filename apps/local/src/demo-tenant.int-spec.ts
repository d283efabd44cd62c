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

  it('has the limits of every tenant, and those that the operator sets', async () => {
    expect(await prepare()).toEqual({});
    await new TenantStore(catalog).setLimits('demo', { openStreams: 3 });
    expect(await prepare()).toEqual({ openStreams: 3 });
  });
});
