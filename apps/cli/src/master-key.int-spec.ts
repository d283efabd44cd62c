import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseSigningKey } from '@baton/a2a';
import { masterKeyIdsOf } from '@baton/config';
import { Database } from '@baton/database';
import { createDatabase, type TestDatabase } from '../../../test/support/index.js';
import { baton, folder } from './operator.fixture.js';

const NAMES = ['master-key', 'database-system-key', 'push-signing-key'];

let database: TestDatabase;
let keys: string;

beforeEach(async () => {
  database = await createDatabase();
  keys = join(folder, database.url.split('/').at(-1) ?? '');
  mkdirSync(keys);
});

afterEach(() => database.drop());

const create = (options = '') => baton(`master-key create ${keys}${options}`, { DATABASE_URL: database.url });
const made = (): string[] => NAMES.map((name) => readFileSync(join(keys, name), 'utf8'));

/** What each process does when it starts with a key. */
async function use(masterKey: string): Promise<void> {
  const client = new Database({ url: database.url, poolSize: 1, allowRlsBypass: true });
  const setting = {
    masterKey: Buffer.from(masterKey, 'base64'),
    masterKeySetting: 'BATON_MASTER_KEY',
    previousMasterKeys: [],
  };
  await client.assertMasterKey(masterKeyIdsOf(setting));
  await client.close();
}

describe('baton master-key create', () => {
  it('makes the keys of a new installation once', async () => {
    expect(await create()).toMatchObject({
      code: 0,
      out: '',
      err: expect.stringContaining('Keep a copy') as string,
    });
    const first = made();
    const [key, systemKey, pushKey = ''] = first;
    for (const each of [key, systemKey]) expect(each).toMatch(/^[A-Za-z0-9+/]{43}=\n$/);
    expect(systemKey).not.toBe(key);
    expect(parseSigningKey(pushKey).alg).toBe('ES256');
    // A release before this one did not have it.
    rmSync(join(keys, 'push-signing-key'));
    expect((await create()).code).toBe(0);
    expect(made().slice(0, 2)).toEqual(first.slice(0, 2));
  });

  it('makes no other key for a database that has one, unless that is lost', async () => {
    await create();
    const [key = ''] = made();
    await use(key.trim());
    rmSync(join(keys, 'master-key'));
    const refused = await create();
    expect(refused).toMatchObject({ code: 1, out: '' });
    expect(refused.err).toContain(
      `${join(keys, 'master-key')} is gone, and the database was used with this master key`,
    );
    expect(() => made()).toThrow('ENOENT');
    expect((await create(' --lost')).code).toBe(0);
    expect(made()[0]).not.toBe(key);
  });

  it('names a folder that is missing and a database that is not there', async () => {
    rmSync(keys, { recursive: true });
    expect((await create()).err).toBe(
      `Keys cannot be written to ${keys} (ENOENT): name a folder that this user may write to.`,
    );
    writeFileSync(keys, '');
    expect((await baton(`master-key create ${keys}`, {})).err).toMatch(/^DATABASE_URL is not set: /);
  });
});
