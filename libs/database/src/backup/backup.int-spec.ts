import { randomBytes, randomUUID } from 'node:crypto';
import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Client } from 'pg';
import { migrationNames, migrationsFolder } from '../connection/migrations-folder.js';
import { migrate } from '../migrations/migrate.js';
import { verifyBackup } from './verify-backup.js';
import {
  client,
  collect,
  connect,
  emptyDatabase,
  LEFT_OUT,
  restore,
  streamOf,
  tableNames,
  withManifest,
} from './backup.fixture.js';

/** Every row of every table as text, in an order of its own. */
async function contentOf(of: Client): Promise<Record<string, string[]>> {
  const content: Record<string, string[]> = {};
  for (const name of await tableNames(of)) {
    if (LEFT_OUT.includes(name)) continue;
    const { rows } = await of.query<{ row: string }>(`SELECT t::text AS row FROM ${name} t`);
    content[name] = rows.map(({ row }) => row).sort();
  }
  return content;
}

/** A value that is awkward to carry, for a column of this type. Ids are alike, so that rows belong together. */
function awkward(type: string, number: number): unknown {
  const text = `tab\t newline\n return\r backslash \\ \\N \\. quote ' " ☃ 𝄞 ${number}\\\\`;
  if (type === 'json') return `{ "b" :1,"a": "nul \\u0000, half \\ud800", "a":[1e400, ${number}] }`;
  if (type === 'bytea') return randomBytes(300);
  if (type === 'uuid') return `00000000-0000-4000-8000-00000000000${number}`;
  if (type === 'text') return text;
  return number;
}

/** A row in every table, straight into the columns that must have a value and those of text, JSON and bytes. */
async function fillEveryTable(number: number): Promise<void> {
  for (const { name: table } of (await collect()).manifest.tables) {
    const { rows: columns } = await client.query<{
      name: string;
      type: string;
      optional: boolean;
      element: string;
    }>(
      `SELECT column_name AS name, data_type AS type, udt_name AS element,
         is_nullable = 'YES' OR column_default IS NOT NULL AS optional
       FROM information_schema.columns
       WHERE table_schema = 'public' AND table_name = $1 AND is_generated = 'NEVER' AND is_identity = 'NO'`,
      [table],
    );
    const used = columns.filter(
      ({ type, optional }) => !optional || ['json', 'bytea', 'text', 'double precision'].includes(type),
    );
    const values = used.map(({ type, element }) => {
      if (type === 'ARRAY') return element === '_uuid' ? [randomUUID()] : ['a,b', '{"', 'NULL', ''];
      if (type.startsWith('timestamp')) return new Date(1_700_000_000_000 + number);
      if (type === 'date') return `20${10 + number}-02-03`;
      if (type === 'boolean') return true;
      if (type === 'double precision') return 0.1 + 0.2;
      return awkward(type, number);
    });
    const names = used.map(({ name }) => `"${name}"`).join(', ');
    const marks = used.map((_, index) => `$${index + 1}`).join(', ');
    await client.query(`INSERT INTO ${table} (${names}) VALUES (${marks})`, values);
  }
}

describe('a backup', () => {
  beforeAll(async () => {
    for (const number of [1, 2, 3]) await fillEveryTable(number);
    const large = JSON.stringify({ text: 'ä'.repeat(9_000_000) });
    await client.query('UPDATE task_events SET payload = $1 WHERE attempt = 1', [large]);
  });

  it('has every table of the schema, those that are new included, but for the ones it names', async () => {
    await client.query(
      'CREATE TABLE brand_new (id int PRIMARY KEY, "a b" text, twice int GENERATED ALWAYS AS (id * 2) STORED)',
    );
    await client.query(`INSERT INTO brand_new VALUES (1, 'x'), (2, NULL)`);
    try {
      const { manifest, checksums, file } = await collect();
      expect(manifest.leftOut.map(({ name }) => name).sort()).toEqual(LEFT_OUT);
      const names = [...manifest.tables.map(({ name }) => name), ...LEFT_OUT].sort();
      expect(names).toEqual(await tableNames(client));
      expect(manifest.tables.every(({ name, rows }) => rows >= (name === 'brand_new' ? 2 : 3))).toBe(true);
      expect(manifest.tables.find(({ name }) => name === 'brand_new')?.columns).toEqual(['id', 'a b']);
      expect(manifest.migrations).toEqual(migrationNames());
      for (const { name, rows } of manifest.tables) expect(checksums[name]?.rows).toBe(rows);
      expect(await verifyBackup(streamOf(file)())).toEqual(manifest);
    } finally {
      await client.query('DROP TABLE brand_new');
    }
  });

  it('brings every row back to the byte, with row-level security as before', async () => {
    const { file } = await collect();
    const url = await emptyDatabase();
    expect((await restore(url, file)).migrated).toEqual([]);
    const target = await connect(url);
    const security = `SELECT relname, relrowsecurity, relforcerowsecurity FROM pg_class
      WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace ORDER BY 1`;
    try {
      const content = await contentOf(target);
      expect(Object.values(content).every((rows) => rows.length === 3)).toBe(true);
      expect(content).toEqual(await contentOf(client));
      expect((await target.query(security)).rows).toEqual((await client.query(security)).rows);
      await target.query(`SET baton.tenant = ''`);
      expect((await target.query('SELECT 1 FROM task_events')).rows).toEqual([]);
    } finally {
      await target.end();
    }
  });

  it('goes into an empty database only, unless an option deletes its content', async () => {
    const { file } = await collect();
    const url = await emptyDatabase();
    await restore(url, file);
    const target = await connect(url);
    try {
      await target.query('DELETE FROM schedules');
      const refused = restore(url, file);
      await expect(refused).rejects.toThrow(
        / is not empty: there are rows in .*\btenants\b.*--force, which DELETES/,
      );
      expect((await target.query('SELECT 1 FROM schedules')).rows).toEqual([]);
      await restore(url, file, true);
      expect(await contentOf(target)).toEqual(await contentOf(client));
      await target.query(`SET application_name = 'baton'`);
      await expect(restore(url, file, true)).rejects.toThrow(/stop every API and worker first/);
    } finally {
      await target.end();
    }
  });

  it('of a database that asks for a key goes into one that asks for another one', async () => {
    const [before, after] = ['A', 'B'].map((letter) => `${letter.repeat(43)}=`) as [string, string];
    const { file } = await collect();
    const first = await emptyDatabase();
    await restore(first, file, false, before);
    await expect(collect(first)).rejects.toThrow('The scope of all tenants needs the key of this database');
    const second = await emptyDatabase();
    await restore(second, (await collect(first, before)).file, false, after);
    await expect(collect(second, before)).rejects.toThrow('needs the key');
    const { manifest } = await collect(second, after);
    expect(manifest.tables.find(({ name }) => name === 'tenants')?.rows).toBe(3);
  });

  it('of an earlier release is migrated to this one', async () => {
    const names = migrationNames();
    const folder = mkdtempSync(join(tmpdir(), 'baton-earlier-'));
    for (const name of ['migration_lock.toml', ...names.slice(0, 5)]) {
      cpSync(join(migrationsFolder(), name), join(folder, name), { recursive: true });
    }
    const earlier = await emptyDatabase();
    await migrate(earlier, { folder });
    rmSync(folder, { recursive: true });
    const old = await connect(earlier);
    await old.query('DROP TABLE IF EXISTS _baton_migration_progress');
    await old.query(`INSERT INTO tenants (id, slug) VALUES ('${randomUUID()}', 'of-old')`);
    await old.end();

    const url = await emptyDatabase();
    const { migrated } = await restore(url, (await collect(earlier)).file);
    expect(migrated).toEqual(names.slice(5));
    const target = await connect(url);
    expect((await target.query('SELECT slug, limits FROM tenants')).rows).toEqual([
      expect.objectContaining({ slug: 'of-old' }),
    ]);
    await target.end();
  });

  it('of a later release is refused, and the database stays as it is', async () => {
    const later = '29991231000000_of_a_later_release';
    const file = await withManifest((await collect()).file, (manifest) => ({
      ...manifest,
      migrations: [...manifest.migrations, later],
    }));
    const url = await emptyDatabase();
    await expect(restore(url, file, true)).rejects.toThrow(
      new RegExp(`does not have \\(${later}\\): restore it with release`),
    );
    const target = await connect(url);
    expect(await tableNames(target)).toEqual([]);
    await target.end();
  });
});
