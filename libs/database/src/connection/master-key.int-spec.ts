import { masterKeyIdsOf } from '@baton/config';
import { randomBytes, randomUUID } from 'node:crypto';
import { Client } from 'pg';
import { createDatabase, type TestDatabase } from '../../../../test/support/index.js';
import { Database } from './database.js';

const newKey = (): Buffer => randomBytes(32);
const [ONE, TWO, STRAY] = [newKey(), newKey(), newKey()];
const ids = (masterKey: Buffer = ONE, ...previousMasterKeys: Buffer[]) =>
  masterKeyIdsOf({ masterKey, masterKeySetting: 'BATON_MASTER_KEY_FILE', previousMasterKeys })!;
const idOf = (key?: Buffer) => ids(key).newest;

let test: TestDatabase;
let client: Client;

beforeEach(async () => {
  test = await createDatabase();
  client = new Client({ connectionString: test.url });
  await client.connect();
  await client.query(`SET baton.tenant = 'system'`);
});

afterEach(async () => {
  await client.end();
  await test.drop();
});

/** A process with these keys connects. @returns why it may not; undefined = it may */
async function connect(...keys: Buffer[]): Promise<string | undefined> {
  const [newest, ...previous] = keys;
  const database = new Database({ url: test.url, masterKeys: ids(newest, ...previous), poolSize: 1 });
  try {
    await database.ping();
    return undefined;
  } catch (error) {
    return String(error);
  } finally {
    await database.close();
  }
}

const recorded = async (): Promise<string | undefined> =>
  (await client.query<{ value: string }>('SELECT value FROM installation')).rows[0]?.value;

/** As an earlier release has left it: secrets of these keys, and no record of a key. */
async function store(...keys: Buffer[]): Promise<void> {
  const tenant = randomUUID();
  await client.query('INSERT INTO tenants (id, slug) VALUES ($1, $2)', [tenant, tenant]);
  for (const [index, key] of keys.entries()) {
    await client.query(
      `INSERT INTO secrets (tenant_id, name, key_id, nonce, ciphertext, updated_at) VALUES ($1, $2, $3, '', '', now())`,
      [tenant, `secret-${index}`, idOf(key)],
    );
  }
}

const ANOTHER = (own?: Buffer, its?: Buffer): RegExp =>
  new RegExp(
    `^MasterKeyError: BATON_MASTER_KEY_FILE gives the key ${idOf(own)}, and the secrets of this database are encrypted with the key ${idOf(its)}: `,
  );

describe('the master key of a database', () => {
  it('is that of the first process, and others get no connection', async () => {
    expect(await connect(ONE)).toBeUndefined();
    expect(await recorded()).toBe(idOf(ONE));
    expect(await connect(STRAY)).toMatch(ANOTHER(STRAY, ONE));
    expect(await connect(ONE)).toBeUndefined();
  });

  it('is one of them when processes with several keys are first at the same time', async () => {
    const answers = await Promise.all([ONE, TWO, STRAY].map((key) => connect(key)));
    expect(answers.filter((answer) => answer === undefined)).toHaveLength(1);
    const index = answers.indexOf(undefined);
    expect(await recorded()).toBe(idOf([ONE, TWO, STRAY][index]));
  });

  it('is known to processes with either key while keys are changed', async () => {
    await connect(ONE);
    expect(await connect(ONE, TWO)).toBeUndefined();
    expect(await connect(TWO, ONE)).toBeUndefined();
    expect(await recorded()).toBe(idOf(ONE));
    const operator = new Database({ url: test.url, poolSize: 1 });
    await operator.changeMasterKey(ids(TWO, ONE));
    await operator.close();
    expect(await connect(ONE, TWO)).toBeUndefined();
    expect(await connect(TWO)).toBeUndefined();
    expect(await connect(ONE)).toMatch(ANOTHER(ONE, TWO));
  });

  it.each([
    ['the key of its secrets', [ONE], [ONE], ONE],
    ['the newest of several that its secrets have', [ONE, ONE, TWO], [TWO, ONE], TWO],
    ['the earlier one while nothing is encrypted with the next one', [ONE], [TWO, ONE], ONE],
  ])('of an earlier release is %s', async (_, stored, keys, expected) => {
    await store(...stored);
    expect(await connect(...keys)).toBeUndefined();
    expect(await recorded()).toBe(idOf(expected));
  });

  it('of an earlier release is never one that opens none of its secrets', async () => {
    await store(ONE);
    expect(await connect(STRAY)).toMatch(ANOTHER(STRAY, ONE));
    expect(await recorded()).toBeUndefined();
  });

  it('stays open while no process opens all secrets', async () => {
    await store(ONE, STRAY);
    expect(await connect(ONE)).toBeUndefined();
    expect(await connect(STRAY)).toBeUndefined();
    expect(await recorded()).toBeUndefined();
  });

  it('is known to be wrong by a process that was left out when it was changed', async () => {
    const [own, next] = [newKey(), newKey()];
    const database = new Database({ url: test.url, masterKeys: ids(own), poolSize: 1 });
    try {
      await database.ping();
      expect(database.hasWrongKey).toBe(false);
      await client.query(`UPDATE installation SET value = $1 WHERE name = 'master_key'`, [idOf(next)]);
      await expect(database.assertMasterKey()).rejects.toThrow(idOf(next));
      expect(database.hasWrongKey).toBe(true);
      await client.query(`UPDATE installation SET value = $1 WHERE name = 'master_key'`, [idOf(own)]);
      await database.assertMasterKey();
      expect(database.hasWrongKey).toBe(false);
    } finally {
      await database.close();
    }
  });

  it('is not asked for before its migration', async () => {
    await client.query('DROP TABLE installation');
    expect(await connect(STRAY)).toBeUndefined();
  });
});
