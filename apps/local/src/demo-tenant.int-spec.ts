import { SCOPES } from '@baton/a2a';
import { loadEnvironment } from '@baton/config';
import { CatalogClient, TenantStore, PLATFORM_ACTOR } from '@baton/database';
import { Client } from 'pg';
import { createDatabase, type TestDatabase } from '../../../test/support/index.js';
import { prepareDemo } from './demo-tenant.js';
import type { Demo, Home } from './home.js';

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

  it('has a token that may do everything in it, also where an earlier release made one that may do less', async () => {
    const query = async (text: string) => {
      const client = new Client({ connectionString: database.url });
      await client.connect();
      try {
        await client.query(`SET baton.tenant = 'system'`);
        return (await client.query<{ scopes: string[] }>(text)).rows;
      } finally {
        await client.end();
      }
    };
    const tokens = async () =>
      (await query(`SELECT scopes FROM api_tokens WHERE name = 'npm start' ORDER BY created_at`)).map(
        ({ scopes }) => scopes,
      );
    let demo: Demo | undefined;
    const home: Pick<Home, 'readDemo' | 'writeDemo'> = {
      readDemo: () => demo,
      writeDemo: (written) => (demo = written),
    };
    const environment = loadEnvironment({ DATABASE_URL: database.url });
    await prepareDemo(environment, home as Home);
    await prepareDemo(environment, home as Home);
    expect(await tokens()).toEqual([[...SCOPES]]);
    await query(`UPDATE api_tokens SET scopes = '{agents:call}' WHERE name = 'npm start'`);
    await prepareDemo(environment, home as Home);
    expect(await tokens()).toEqual([['agents:call'], [...SCOPES]]);
  });

  it('has the limits of every tenant, and those that the operator sets', async () => {
    expect(await prepare()).toEqual({});
    await new TenantStore(catalog).setLimits('demo', { openStreams: 3 }, [], PLATFORM_ACTOR);
    expect(await prepare()).toEqual({ openStreams: 3 });
  });
});
