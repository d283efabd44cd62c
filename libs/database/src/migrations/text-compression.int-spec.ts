import { Client } from 'pg';
import { type PrivatePostgres, startPrivatePostgres } from '../../../../test/support/postgres.js';
import { debianPostgres } from '../../../../test/support/stock-postgres.js';
import { cleanUp, emptyDatabase, migrate, Migrating, rowsOf } from './migrating.fixture.js';

/** Unlike that of npm, it has LZ4. */
const programs = debianPostgres();
const title = programs
  ? 'of a Postgres with LZ4'
  : 'of a Postgres with LZ4, left out: there is none of Debian';

const CONTENT = ['call_records.value', 'console_lines.text', 'task_events.payload', 'task_messages.message', 'tasks.artifacts', 'turn_journal.value']; // prettier-ignore
const COMPRESSIONS = `SELECT c.relname || '.' || a.attname AS name,
    CASE a.attcompression WHEN 'l' THEN 'lz4' WHEN 'p' THEN 'pglz' ELSE 'default' END AS compression
  FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
  WHERE c.relnamespace = 'public'::regnamespace AND c.relname || '.' || a.attname IN (${CONTENT.map((name) => `'${name}'`).join()})
  ORDER BY name`;
const all = (compression: string): unknown[] => CONTENT.map((name) => ({ name, compression }));

afterEach(cleanUp);

it('long texts of a Postgres without LZ4 are compressed as before', async () => {
  const url = await emptyDatabase();
  await migrate(url);
  const [server] = await rowsOf(url, `SELECT 1 FROM pg_settings WHERE 'lz4' = ANY(enumvals)`);
  if (server === undefined) expect(await rowsOf(url, COMPRESSIONS)).toEqual(all('default'));
  else expect(await rowsOf(url, COMPRESSIONS)).toEqual(all('lz4'));
});

(programs ? describe : describe.skip)(title, () => {
  let postgres: PrivatePostgres;
  beforeAll(async () => {
    postgres = await startPrivatePostgres({ ...(programs && { programs }) });
  });
  afterAll(() => postgres.drop());

  it('long texts are compressed with it', async () => {
    expect(await rowsOf(postgres.url, COMPRESSIONS)).toEqual(all('lz4'));
  });

  it('so are those of tables that it did not compress so, when no transaction needs them any more', async () => {
    const long = new Client({ connectionString: postgres.url });
    await long.connect();
    try {
      await long.query('ALTER TABLE task_messages ALTER COLUMN message SET COMPRESSION pglz');
      await long.query('BEGIN; SELECT count(*) FROM task_messages');
      const migrating = new Migrating(postgres.url);
      await migrating.printed(/compression of long texts: gave way after .*, waits for pid \d+/);
      await long.query('COMMIT');
      expect(await migrating.exited).toBe(0);
      expect(await rowsOf(postgres.url, COMPRESSIONS)).toEqual(all('lz4'));
    } finally {
      await long.end();
    }
  });
});
