import { migrationNames } from '../connection/migrations-folder.js';
import { Database } from '../index.js';
import {
  cleanUp,
  connect,
  emptyDatabase,
  migrate,
  Migrating,
  migrationsOf,
  namesOf,
  rowsOf,
} from './migrating.fixture.js';

afterEach(cleanUp);

describe('an empty database', () => {
  it('is migrated once by several processes at once; again does nothing', async () => {
    const url = await emptyDatabase();
    const database = new Database({ url, poolSize: 1 });
    try {
      expect(await database.pendingMigrations()).toEqual(migrationNames());
      const printed = await Promise.all([1, 2, 3].map(() => migrate(url)));
      const [worked, ...waited] = printed.sort((a, b) => b.length - a.length);
      const count = migrationNames().length;
      expect(worked).toContain(
        `${count} of ${count} migrations are pending.\n[1/${count}] ${migrationNames()[0]}`,
      );
      expect(worked).toMatch(
        new RegExp(`\nApplied ${count} migrations in .* s. The database is up to date.$`),
      );
      for (const text of waited)
        expect(text).toMatch(/^(Another process migrates .*\n)?The database is up to date\.$/);
      expect(await database.pendingMigrations()).toEqual([]);
      expect(await migrate(url)).toBe('The database is up to date.');
      expect(await rowsOf(url, `SELECT 1 FROM pg_class WHERE relname LIKE '_baton%'`)).toEqual([]);
    } finally {
      await database.close();
    }
  });

  it('does exactly the steps of --dry-run', async () => {
    const url = await emptyDatabase();
    const sql = `ALTER TABLE notes ADD COLUMN size INTEGER;
      -- baton: concurrently
      CREATE INDEX notes_size_idx ON notes(size);`;
    const folder = migrationsOf({ '0002_size': sql });
    expect(await migrate(url, '--dry-run', '--folder', folder)).toBe(
      '0001_notes\n  1/1 transaction: CREATE TABLE notes, INSERT notes\n' +
        '0002_size\n  1/2 transaction: ALTER TABLE notes\n  2/2 build index: build index notes_size_idx on notes\n' +
        '2 pending. Nothing was changed.',
    );
    expect(await rowsOf(url, `SELECT 1 FROM pg_class WHERE relnamespace = 'public'::regnamespace`)).toEqual(
      [],
    );
    await migrate(url, '--folder', folder);
    expect(await migrate(url, '--dry-run', '--folder', folder)).toBe('The database is up to date.');
  });
});

describe('a lock of another session', () => {
  const SIZE = { '0002_size': 'ALTER TABLE notes ADD COLUMN size INTEGER;' };

  it('is waited for in turns, between which the traffic goes on', async () => {
    const url = await emptyDatabase();
    await migrate(url, '--folder', migrationsOf({}));
    const folder = migrationsOf(SIZE);
    const long = await connect(url);
    await long.query('BEGIN; SELECT count(*) FROM notes');
    const migrating = new Migrating(url, '--folder', folder, '--lock-timeout', '300');
    await migrating.printed(
      /gave way .* waits for pid \d+ \(somebody, idle in transaction, for .*; attempt 4 in/,
    );
    // It waits for the next turn or has just begun it: either way a writer and a reader get through.
    const traffic = await connect(url);
    await traffic.query(`UPDATE notes SET text = 'changed' WHERE id = 1`);
    expect((await traffic.query('SELECT text FROM notes WHERE id = 1')).rows).toEqual([{ text: 'changed' }]);
    expect(migrating.output).not.toContain('Applied');
    await long.query('COMMIT');
    expect(await migrating.exited).toBe(0);
    expect(migrating.output).toMatch(/1\/1 ALTER TABLE notes: done in .*\nApplied 1 migrations/);
  });

  it('ends the migration after --lock-patience, with the blocking session in the error; the next one works', async () => {
    const url = await emptyDatabase();
    await migrate(url, '--folder', migrationsOf({}));
    const folder = migrationsOf(SIZE);
    const long = await connect(url);
    await long.query('BEGIN; SELECT count(*) FROM notes');
    const limits = ['--lock-timeout', '200', '--lock-patience', '1000'];
    await expect(migrate(url, '--folder', folder, ...limits)).rejects.toMatchObject({
      code: 1,
      stderr: expect.stringMatching(
        /^Migration failed: 0002_size: no lock in .* s, \d+ attempts; held by pid \d+ \(somebody, idle in transaction, .*\)\. End it, /,
      ) as string,
    });
    await long.query('COMMIT');
    expect(await migrate(url, '--folder', folder)).toContain('Applied 1 migrations');
    expect(await namesOf(url)).toEqual([
      { name: '0001_notes', state: 'applied' },
      { name: '0002_size', state: 'rolled back' },
      { name: '0002_size', state: 'applied' },
    ]);
  });
});

it('a database that cannot be reached is one sentence and exit code 1', async () => {
  await expect(migrate('postgres://nobody@127.0.0.1:1/none')).rejects.toMatchObject({
    code: 1,
    stderr: 'Migration failed: Postgres is not available: connect ECONNREFUSED 127.0.0.1:1\n',
  });
  await expect(migrate('')).rejects.toMatchObject({
    code: 1,
    stderr: expect.stringContaining('DATABASE_URL is not set') as string,
  });
});
