import { Client } from 'pg';
import { startProcess } from '../support/baton-process.js';
import { createDatabase, type TestDatabase } from '../support/index.js';

/** What is done to the newest migration of the database. */
const TAKE_BACK = `UPDATE _prisma_migrations SET rolled_back_at = now()
  WHERE migration_name = (SELECT max(migration_name) FROM _prisma_migrations) RETURNING migration_name AS name`;
const APPLY = `UPDATE _prisma_migrations SET rolled_back_at = NULL`;

describe('a database that has not been migrated', () => {
  let database: TestDatabase;
  let client: Client;
  beforeAll(async () => {
    database = await createDatabase();
    client = new Client({ connectionString: database.url });
    await client.connect();
  });
  afterAll(async () => {
    await client.end();
    await database.drop();
  });

  it('is waited for by API and worker, which say for what and what to do', async () => {
    const { rows } = await client.query<{ name: string }>(TAKE_BACK);
    const waits = `waiting for migrations: run \`npm run migrate\`; ${rows[0]!.name} not applied`;
    const env = { DATABASE_URL: database.url, REDIS_URL: '' };
    const api = await startProcess('api', env);
    let isWorking = false;
    const starting = startProcess('worker', env).then((worker) => {
      isWorking = true;
      return worker;
    });
    while (!api.log().includes(waits)) await new Promise((resolve) => setTimeout(resolve, 50));
    expect((await fetch(`${api.url}/readyz`)).status).toBe(503);
    const refused = await fetch(`${api.managementUrl}/readyz`);
    expect(refused.status).toBe(503);
    expect(await refused.text()).toContain(rows[0]!.name);
    expect(api.log()).not.toContain('api is ready');
    expect(isWorking).toBe(false);

    await client.query(APPLY);
    const worker = await starting;
    while (!api.log().includes('api is ready')) await new Promise((resolve) => setTimeout(resolve, 50));
    expect(api.log().split(waits)).toHaveLength(2);
    expect([await api.stop(), await worker.stop()]).toEqual([0, 0]);
    expect(worker.log().split(waits).length).toBeLessThanOrEqual(2);
  });
});
