import {
  cleanUp,
  connect,
  emptyDatabase,
  migrate,
  Migrating,
  migrationsOf,
  namesOf,
  ROWS,
  rowsOf,
} from './migrating.fixture.js';

afterEach(cleanUp);

describe('an index that is built concurrently', () => {
  const INDEX = `-- baton: concurrently\nCREATE UNIQUE INDEX notes_text_key ON notes(text);`;
  const VALID = `SELECT indisvalid AS valid FROM pg_index WHERE indexrelid = to_regclass('notes_text_key')`;

  it('lets writers through while it waits for an old transaction, and a second process waits', async () => {
    const url = await emptyDatabase();
    await migrate(url, '--folder', migrationsOf({}));
    const folder = migrationsOf({ '0002_index': INDEX });
    const long = await connect(url);
    await long.query(
      'BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM notes; UPDATE notes SET text = text WHERE id = 9',
    );
    const migrating = new Migrating(url, '--folder', folder);
    await migrating.printed(
      /build index notes_text_key on notes: waiting for .*waits for pid \d+ \(somebody/,
    );
    const other = new Migrating(url, '--folder', folder);
    await other.printed(/Another process migrates this database \(pid \d+ in Postgres\)\. Waiting for it\./);
    await (await connect(url)).query(`UPDATE notes SET text = 'changed' WHERE id = 1`);
    await long.query('COMMIT');
    expect(await Promise.all([migrating.exited, other.exited])).toEqual([0, 0]);
    expect(other.output).toMatch(/The database is up to date\.\n$/);
    expect(await rowsOf(url, VALID)).toEqual([{ valid: true }]);
  });

  it('is dropped and built again after a build that was killed', async () => {
    const url = await emptyDatabase();
    await migrate(url, '--folder', migrationsOf({}));
    const folder = migrationsOf({ '0002_index': INDEX });
    const long = await connect(url);
    await long.query('BEGIN; UPDATE notes SET text = text WHERE id = 9');
    const killed = new Migrating(url, '--folder', folder);
    await killed.printed(/waiting for .*waits for pid/);
    await killed.kill();
    expect(await rowsOf(url, VALID)).toEqual([{ valid: false }]);
    const next = new Migrating(url, '--folder', folder);
    await next.printed(/an earlier build was not finished; dropping it|another session is building it/);
    await long.query('COMMIT');
    expect(await next.exited).toBe(0);
    expect(await rowsOf(url, VALID)).toEqual([{ valid: true }]);
    expect((await namesOf(url)).map(({ state }) => state)).toEqual(['applied', 'rolled back', 'applied']);
  });

  it('that cannot be unique fails with the reason, and is built once the rows are fixed', async () => {
    const url = await emptyDatabase();
    await migrate(url, '--folder', migrationsOf({}));
    const client = await connect(url);
    await client.query(`UPDATE notes SET text = 'twice' WHERE id < 3`);
    const folder = migrationsOf({ '0002_index': INDEX });
    await expect(migrate(url, '--folder', folder)).rejects.toMatchObject({
      stderr:
        'Migration failed: 0002_index: could not create unique index "notes_text_key": Key (text)=(twice) is duplicated.\n',
    });
    await client.query(`UPDATE notes SET text = 'once' WHERE id = 1`);
    await migrate(url, '--folder', folder);
    expect(await rowsOf(url, VALID)).toEqual([{ valid: true }]);
  });
});

describe('a backfill', () => {
  /** Counts how often each row is touched; each slice takes a moment. */
  const BACKFILL = `ALTER TABLE notes ADD COLUMN touched INTEGER NOT NULL DEFAULT 0;
    SELECT set_config('baton.tenant', 'system', true);
    -- baton: backfill table=notes key=id rows=20
    UPDATE notes n SET touched = touched + 1 FROM pg_sleep(0.05) WHERE /* slice */ true;
    -- baton: concurrently
    CREATE INDEX notes_touched_idx ON notes(touched);`.replace('slice */', 'slice of n */');

  it('goes on after a kill -9 where it was, and touches every row once', async () => {
    const url = await emptyDatabase();
    const folder = migrationsOf({ '0002_touched': BACKFILL });
    const killed = new Migrating(url, '--folder', folder);
    await killed.printed(/backfill notes: slice [2-9]\d* of about \d+, \d+ rows/);
    await killed.kill();
    const [done] = await rowsOf<{ slices: number }>(
      url,
      'SELECT slices FROM _baton_migration_progress WHERE slices > 0',
    );
    expect(done?.slices).toBeLessThan(ROWS / 20);
    const [pending] = await namesOf(url).then((rows) => rows.slice(-1));
    expect(pending).toEqual({ name: '0002_touched', state: 'unfinished' });
    const printed = await migrate(url, '--folder', folder);
    expect(printed).toMatch(/1\/3 ALTER TABLE notes, SELECT: was done before\n/);
    expect(printed).toMatch(/2\/3 backfill notes: continues after slice \d+\n/);
    expect(printed).toMatch(/2\/3 backfill notes: 51 slices, 1000 rows in /);
    expect(await rowsOf(url, 'SELECT touched, count(*)::int AS rows FROM notes GROUP BY 1')).toEqual([
      { touched: 1, rows: ROWS },
    ]);
  });

  it('gives way to a transaction that holds one of its rows, whose other rows stay free', async () => {
    const url = await emptyDatabase();
    await migrate(url, '--folder', migrationsOf({}));
    const folder = migrationsOf({ '0002_touched': BACKFILL });
    const long = await connect(url);
    const migrating = new Migrating(url, '--folder', folder);
    await migrating.printed(/1\/3 .*: done/);
    await long.query('BEGIN; UPDATE notes SET text = text WHERE id = 990');
    await migrating.printed(/2\/3 backfill notes: gave way after 0\.50 s, waits for pid \d+ \(somebody/);
    await (await connect(url)).query(`UPDATE notes SET text = 'changed' WHERE id = 989`);
    await long.query('COMMIT');
    expect(await migrating.exited).toBe(0);
    expect(await rowsOf(url, 'SELECT DISTINCT touched FROM notes')).toEqual([{ touched: 1 }]);
  });
});
