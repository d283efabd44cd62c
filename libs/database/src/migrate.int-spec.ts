import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { asAdministrator, databaseUrl, dropDatabase } from '../../../test/support/database.js';
import { Database } from './index.js';
import { migrationNames } from './migrations-folder.js';

const name = `test_${randomBytes(6).toString('hex')}`;

/** What `npm run migrate` prints. Rejects with its exit code and stderr. */
async function migrate(url: string): Promise<string> {
  const script = join(__dirname, 'migrate-process.fixture.cjs');
  const env = { ...process.env, DATABASE_URL: url };
  return (await promisify(execFile)(process.execPath, [script], { env })).stdout.trim();
}

it('several processes at once migrate an empty database once; again does nothing', async () => {
  await asAdministrator(`CREATE DATABASE ${name}`);
  const database = new Database({ url: databaseUrl(name), poolSize: 1 });
  try {
    expect(await database.pendingMigrations()).toEqual(migrationNames());
    const printed = await Promise.all([1, 2, 3].map(() => migrate(databaseUrl(name))));
    expect(printed.sort()).toEqual([
      `Applied: ${migrationNames().join(', ')}`,
      'The database is up to date.',
      'The database is up to date.',
    ]);
    expect(await database.pendingMigrations()).toEqual([]);
    expect(await migrate(databaseUrl(name))).toBe('The database is up to date.');
  } finally {
    await database.close();
    await dropDatabase(databaseUrl(name));
  }
});

it('a database that can not be reached is one sentence and exit code 1', async () => {
  await expect(migrate('postgres://nobody@127.0.0.1:1/none')).rejects.toMatchObject({
    code: 1,
    stderr: 'Migration failed: Postgres is not available: connect ECONNREFUSED 127.0.0.1:1\n',
  });
  await expect(migrate('')).rejects.toMatchObject({
    code: 1,
    stderr: expect.stringContaining('DATABASE_URL is not set') as string,
  });
});
