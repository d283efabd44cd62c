import { Writable } from 'node:stream';
import { gunzipSync, gzipSync } from 'node:zlib';
import { backUp } from './backup.js';
import { client, collect, connect, emptyDatabase, restore, source, tableNames } from './backup.fixture.js';

beforeAll(async () => {
  await client.query(`INSERT INTO tenants (id, slug) VALUES (gen_random_uuid(), 'nul and void')`);
});

describe('a backup is refused', () => {
  it.each([
    ['cut off', async (file: Buffer) => file.subarray(0, file.length - 200), /incomplete|cannot be read/],
    [
      'cut off and packed again',
      async (file: Buffer) =>
        gzipSync(gunzipSync(file).subarray(0, gunzipSync(file).indexOf('checksums.json'))),
      /incomplete/,
    ],
    ['no backup', () => Promise.resolve(gzipSync('hello')), /cannot be read as a backup|incomplete/],
    [
      'no archive at all',
      () => Promise.resolve(Buffer.from('PK hello')),
      /cannot be read as a backup of Baton/,
    ],
    [
      'changed',
      async (file: Buffer) => {
        const bytes = gunzipSync(file);
        bytes.write('nuL', bytes.indexOf('nul '));
        return gzipSync(bytes);
      },
      /was changed: the rows of \w+ do not match their checksum/,
    ],
  ])('that is %s, and the database stays as it is', async (_, spoil, reason) => {
    const { file } = await collect();
    const url = await emptyDatabase();
    const target = await connect(url);
    await target.query('CREATE TABLE kept (id int)');
    const restored = restore(url, await spoil(file), true);
    await expect(restored).rejects.toThrow(reason);
    await expect(restored).rejects.toMatchObject({ name: 'BackupError' });
    expect(await tableNames(target)).toEqual(['kept']);
    await target.end();
  });

  it('whose rows the role does not see, instead of being made without them', async () => {
    await client.query(
      `ALTER POLICY tenant_isolation ON task_messages USING ("tenant_id"::text = current_setting('baton.tenant', true))`,
    );
    try {
      await expect(collect()).rejects.toThrow(
        /^Row-level security hides rows of task_messages from the role/,
      );
    } finally {
      await client.query(
        `ALTER POLICY tenant_isolation ON task_messages USING (current_setting('baton.tenant', true) IN ("tenant_id"::text, 'system'))`,
      );
    }
  });

  it('while a migration is not finished', async () => {
    await client.query(
      `INSERT INTO _prisma_migrations (id, checksum, migration_name) VALUES ('half', '', '29991231000000_half')`,
    );
    try {
      await expect(collect()).rejects.toThrow('A migration is under way or has stopped halfway');
    } finally {
      await client.query(`DELETE FROM _prisma_migrations WHERE id = 'half'`);
    }
  });

  it('when what it is written to fails', async () => {
    const full = new Writable({ write: (_chunk, _encoding, done) => done(new Error('no space left')) });
    await expect(backUp({ databaseUrl: source.url }, full, () => undefined)).rejects.toThrow('no space left');
  });
});
