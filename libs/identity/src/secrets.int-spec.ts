import type { Environment } from '@baton/config';
import {
  CatalogClient,
  type SealedSecret,
  SecretStore,
  TenantStore,
  webhookSecretName,
  PLATFORM_ACTOR,
} from '@baton/database';
import { randomBytes, randomUUID } from 'node:crypto';
import { Client } from 'pg';
import { createDatabase, type TestDatabase } from '../../../test/support/index.js';
import { PushSecrets } from './push-secrets.js';
import { SecretBox } from './secret-box.js';
import { Secrets } from './secrets.js';

const [one, two] = [randomBytes(32), randomBytes(32)];
const VALUE = 'sk-hunter2';

let database: TestDatabase;
let catalog: CatalogClient;
let store: SecretStore;
let acme: string;
let other: string;

beforeAll(async () => {
  database = await createDatabase();
  catalog = new CatalogClient(database.url);
  store = new SecretStore(catalog);
  const tenants = new TenantStore(catalog);
  [acme, other] = [
    (await tenants.create('acme', PLATFORM_ACTOR)).id,
    (await tenants.create('other', PLATFORM_ACTOR)).id,
  ];
});
afterEach(() => sql('DELETE FROM secrets'));
afterAll(async () => {
  await catalog.close();
  await database.drop();
});

const secrets = (masterKey?: Buffer, ...previousMasterKeys: Buffer[]): Secrets =>
  new Secrets(store, { masterKey, previousMasterKeys });

async function sql(text: string): Promise<Record<string, unknown>[]> {
  const client = new Client({ connectionString: database.url });
  await client.connect();
  await client.query(`SET baton.tenant = 'system'`);
  const { rows } = await client.query<Record<string, unknown>>(text);
  await client.end();
  return rows;
}

describe('secrets', () => {
  it('are set, read, listed without their values, replaced and removed', async () => {
    const info = await secrets(one).set(acme, 'openai', VALUE, undefined, PLATFORM_ACTOR);
    expect(info).toEqual({
      name: 'openai',
      keyId: expect.stringMatching(/^[\da-f]{12}$/) as string,
      origins: ['https://api.openai.com'],
      createdAt: expect.any(Date) as Date,
      updatedAt: expect.any(Date) as Date,
    });
    expect(await secrets(one).get(acme, 'openai', [])).toBe(VALUE);
    expect(await secrets(one).list(acme)).toEqual([info]);
    const again = await secrets(one).set(acme, 'openai', 'newer', undefined, PLATFORM_ACTOR);
    expect(again.createdAt).toEqual(info.createdAt);
    expect(again.updatedAt.getTime()).toBeGreaterThanOrEqual(info.updatedAt.getTime());
    expect(await secrets(one).get(acme, 'openai', [])).toBe('newer');
    expect([
      await secrets(one).remove(acme, 'openai', PLATFORM_ACTOR),
      await secrets(one).remove(acme, 'openai', PLATFORM_ACTOR),
    ]).toEqual([true, false]);
    expect(await secrets(one).get(acme, 'openai', [])).toBeUndefined();
  });

  it('are 1,000 at most, also if they are set at once; one that is there can be replaced', async () => {
    await sql(
      `INSERT INTO secrets (tenant_id, name, key_id, nonce, ciphertext)
       SELECT '${acme}', 'secret-' || n, 'k', '', '' FROM generate_series(1, 999) n`,
    );
    const set = (name: string) => secrets(one).set(acme, name, VALUE, undefined, PLATFORM_ACTOR);
    const outcomes = await Promise.allSettled([set('one'), set('two'), set('three')]);
    const refused = outcomes.filter((each) => each.status === 'rejected');
    expect(refused).toHaveLength(2);
    for (const { reason } of refused) {
      expect(reason).toMatchObject({
        kind: 'limit-exceeded',
        message:
          'the limit secrets of this tenant is reached, which is 1000: remove secrets that no agent uses, or ask the operator for more',
      });
    }
    expect(await set('secret-1')).toMatchObject({ name: 'secret-1' });
    expect(await secrets(one).set(other, 'one', VALUE, undefined, PLATFORM_ACTOR)).toMatchObject({
      name: 'one',
    });
  });

  it('are listed by name page by page', async () => {
    for (const name of ['c', 'a', 'b']) await secrets(one).set(acme, name, VALUE, undefined, PLATFORM_ACTOR);
    await secrets(one).set(other, 'aa', VALUE, undefined, PLATFORM_ACTOR);
    const names = async (limit: number, after?: string) =>
      (await secrets(one).list(acme, { limit, after })).map(({ name }) => name);
    expect(await names(2)).toEqual(['a', 'b']);
    await secrets(one).remove(acme, 'b', PLATFORM_ACTOR);
    expect([await names(2, 'b'), await names(2, 'c')]).toEqual([['c'], []]);
  });

  it('are nowhere in the database in the clear', async () => {
    await secrets(one).set(acme, 'openai', VALUE, undefined, PLATFORM_ACTOR);
    const [row] = await sql('SELECT row_to_json(s)::text AS row, ciphertext FROM secrets s');
    expect(row!.row).not.toContain('hunter2');
    expect(String(row!.row)).not.toContain(Buffer.from('hunter2').toString('hex'));
    expect((row!.ciphertext as Buffer).length).toBe(VALUE.length + 16);
  });

  it('of one tenant cannot be read by another, not even when the row is copied to it', async () => {
    await secrets(one).set(acme, 'openai', VALUE, undefined, PLATFORM_ACTOR);
    expect(await secrets(one).get(other, 'openai', [])).toBeUndefined();
    expect(await secrets(one).list(other)).toEqual([]);
    expect(await secrets(one).remove(other, 'openai', PLATFORM_ACTOR)).toBe(false);
    await sql(`INSERT INTO secrets SELECT '${other}', name, key_id, nonce, ciphertext FROM secrets`);
    await expect(secrets(one).get(other, 'openai', [])).rejects.toThrow(
      'The secret "openai" cannot be decrypted: it was changed in the database or copied from another place',
    );
    await sql(`INSERT INTO secrets SELECT tenant_id, 'copy', key_id, nonce, ciphertext FROM secrets LIMIT 1`);
    await expect(secrets(one).get(acme, 'copy', [])).rejects.toThrow('cannot be decrypted');
    expect(await secrets(one).get(acme, 'openai', [])).toBe(VALUE);
  });

  it.each(['', ' x', '.hidden', 'a/b', 'x'.repeat(129), 'ü'])(
    'have names that can be typed: not "%s"',
    async (name) => {
      await expect(secrets(one).set(acme, name, VALUE, undefined, PLATFORM_ACTOR)).rejects.toThrow(
        'The name of the secret is not valid: use 1 to 128',
      );
    },
  );

  it('have values of 1 to 65536 bytes', async () => {
    await expect(secrets(one).set(acme, 'empty', '', undefined, PLATFORM_ACTOR)).rejects.toThrow(
      '"empty" has 0 bytes: give it 1 to 65536',
    );
    await expect(
      secrets(one).set(acme, 'long', 'x'.repeat(65_537), undefined, PLATFORM_ACTOR),
    ).rejects.toThrow('has 65537 bytes');
    const longest = 'x'.repeat(65_536);
    await secrets(one).set(acme, 'longest', longest, undefined, PLATFORM_ACTOR);
    expect(await secrets(one).get(acme, 'longest', [])).toBe(longest);
  });
});

describe('the origins of a secret', () => {
  const OPENAI = 'https://api.openai.com';
  const get = (name: string, ...destinations: string[]) => secrets(one).get(acme, name, destinations);
  const originsOf = async () => (await secrets(one).list(acme)).map(({ origins }) => origins);

  it('are those of the provider for a secret with its name, and none for others', async () => {
    await secrets(one).set(acme, 'crm', VALUE, undefined, PLATFORM_ACTOR);
    await secrets(one).set(acme, 'openai', VALUE, undefined, PLATFORM_ACTOR);
    expect(await originsOf()).toEqual([[], [OPENAI]]);
    expect(await get('openai', OPENAI)).toBe(VALUE);
    await expect(get('openai', OPENAI, 'https://evil.example')).rejects.toThrow(
      'the secret "openai" may not be sent to https://evil.example: a caller with the scope secrets:write can add',
    );
    await expect(get('crm', 'https://crm.example')).rejects.toThrow('may not be sent');
    expect(await secrets(one).get(acme, 'none', ['https://crm.example'])).toBeUndefined();
  });

  it('are set with the value or alone, and stay when the value is replaced', async () => {
    await secrets(one).set(
      acme,
      'crm',
      'first',
      ['https://CRM.example:443/', 'stdio:npx  -y @acme/crm'],
      PLATFORM_ACTOR,
    );
    await secrets(one).set(acme, 'crm', VALUE, undefined, PLATFORM_ACTOR);
    expect(await originsOf()).toEqual([['https://crm.example', 'stdio:npx -y @acme/crm']]);
    expect(await get('crm', 'https://crm.example', 'stdio:npx -y @acme/crm --read-only')).toBe(VALUE);
    for (const other of [
      'http://crm.example',
      'https://crm.example:8443',
      'stdio:npx -y @acme/crm2',
      'stdio:npx',
    ])
      await expect(get('crm', other)).rejects.toThrow('may not be sent');
    expect(await secrets(one).setOrigins(acme, 'crm', [], PLATFORM_ACTOR)).toMatchObject({ origins: [] });
    await expect(get('crm', 'https://crm.example')).rejects.toThrow('may not be sent');
    for (const name of ['none', 'not\0a name', '../x'])
      expect(await secrets(one).setOrigins(acme, name, [], PLATFORM_ACTOR)).toBeUndefined();
    expect(
      await secrets(one).setOrigins(other, 'crm', ['https://evil.example'], PLATFORM_ACTOR),
    ).toBeUndefined();
    expect(await originsOf()).toEqual([[]]);
  });

  it('were not known to an earlier release: its secrets go anywhere until they are set', async () => {
    await secrets(one).set(acme, 'openai', VALUE, undefined, PLATFORM_ACTOR);
    await sql('UPDATE secrets SET origins = NULL');
    expect(await get('openai', 'https://gateway.example')).toBe(VALUE);
    expect((await secrets(one).set(acme, 'openai', 'next', undefined, PLATFORM_ACTOR)).origins).toBeNull();
    await secrets(one).setOrigins(acme, 'openai', [OPENAI], PLATFORM_ACTOR);
    await expect(get('openai', 'https://gateway.example')).rejects.toThrow('may not be sent');
  });

  it('stay with a rotation of the master key', async () => {
    await secrets(one).set(acme, 'crm', VALUE, ['https://crm.example'], PLATFORM_ACTOR);
    await secrets(two, one).rotate();
    expect(await secrets(two).get(acme, 'crm', ['https://crm.example'])).toBe(VALUE);
    expect(await originsOf()).toEqual([['https://crm.example']]);
  });

  it.each([
    '*',
    'crm.example',
    'https://crm.example/path',
    'https://a:b@crm.example',
    'ftp://crm',
    'stdio:',
    'data:x',
    'https://crm.example?x',
    'stdio:a\nb',
  ])('are refused by their place: %s', async (text) => {
    const set = secrets(one).set(acme, 'crm', VALUE, ['https://crm.example', text], PLATFORM_ACTOR);
    await expect(set).rejects.toMatchObject({
      field: 'origins[1]',
      message: expect.stringContaining('must be scheme, host and port') as string,
    });
    expect(await originsOf()).toEqual([]);
  });
});

describe('a rotation', () => {
  it('encrypts the secrets of push configs and of webhooks again', async () => {
    const task = randomUUID();
    const config = { tenantId: acme, taskId: task, configId: 'of a caller' };
    const pushSecrets = (masterKey: Buffer) =>
      new PushSecrets({ masterKey, previousMasterKeys: [] } as unknown as Environment);
    const given = { token: 'tok', credentials: 'whsec_x' };
    const sealed = pushSecrets(one).seal(config, given)!;
    const key = { tenantId: acme, name: webhookSecretName(task) };
    const webhook = new SecretBox({ masterKey: one, previousMasterKeys: [] }).seal(key, VALUE);
    const hex = (bytes: Uint8Array): string => `'\\x${Buffer.from(bytes).toString('hex')}'`;
    const columns = ({ keyId, nonce, ciphertext }: SealedSecret): string =>
      `'${keyId}', ${hex(nonce)}, ${hex(ciphertext)}`;
    await sql(
      `INSERT INTO push_configs (tenant_id, task_id, id, url, protocol, delivered_sequence, head_sequence, key_id, nonce, ciphertext)
       VALUES ('${acme}', '${task}', 'of a caller', 'https://x.example', '1.0', 0, 0, ${columns(sealed)})`,
    );
    await sql(
      `INSERT INTO webhooks (tenant_id, id, url, created_by, key_id, nonce, ciphertext)
       VALUES ('${acme}', '${task}', 'https://x.example', 'test', ${columns(webhook)})`,
    );
    await secrets(one).set(acme, 'openai', VALUE, undefined, PLATFORM_ACTOR);
    expect(await secrets(two, one).rotate(1)).toMatchObject({ rotated: 3, failures: [] });
    const read = async (table: string) =>
      (await sql(`SELECT key_id AS "keyId", nonce, ciphertext FROM ${table}`))[0] as unknown as SealedSecret;
    expect(pushSecrets(two).open({ ...config, sealed: await read('push_configs') })).toEqual(given);
    const box = new SecretBox({ masterKey: two, previousMasterKeys: [] });
    expect(box.open(key, await read('webhooks'))).toBe(VALUE);
    await sql('DELETE FROM push_configs');
    await sql('DELETE FROM webhooks');
  });

  const fill = async (count: number): Promise<string[]> => {
    const names = Array.from({ length: count }, (_, i) => `s${i}`);
    for (const name of names)
      for (const tenant of [acme, other])
        await secrets(one).set(tenant, name, `${tenant}/${name}`, undefined, PLATFORM_ACTOR);
    return names;
  };

  it('encrypts every secret of every tenant with the newest key; the old one can be dropped after it', async () => {
    const names = await fill(7);
    expect(await secrets(two, one).rotate(3)).toEqual({
      rotated: 14,
      failures: [],
      keyId: (await secrets(two, one).set(acme, 'new', VALUE, undefined, PLATFORM_ACTOR)).keyId,
    });
    for (const name of names)
      for (const tenant of [acme, other]) {
        expect(await secrets(two).get(tenant, name, [])).toBe(`${tenant}/${name}`);
      }
    expect(await secrets(two, one).rotate(3)).toMatchObject({ rotated: 0 });
  });

  it('goes on where it was broken off, and several at once do no harm', async () => {
    await fill(5);
    const replace = store.replace.bind(store);
    let left = 4;
    jest.spyOn(store, 'replace').mockImplementation(async (...args) => {
      if (left-- === 0) throw new Error('killed');
      return replace(...args);
    });
    await expect(secrets(two, one).rotate(2)).rejects.toThrow('killed');
    jest.restoreAllMocks();
    const rotations = await Promise.all([1, 2, 3].map(() => secrets(two, one).rotate(2)));
    expect(rotations.reduce((sum, { rotated }) => sum + rotated, 0)).toBe(6);
    expect(await secrets(two).get(other, 's4', [])).toBe(`${other}/s4`);
  });

  it('never brings back an old value of a secret that is set while it runs', async () => {
    await fill(1);
    const replace = store.replace.bind(store);
    const setTimes = (times: number) => {
      let left = times;
      jest.spyOn(store, 'replace').mockImplementation(async (...args) => {
        // Between its reading and its writing.
        if (args[0].tenantId === acme && left-- > 0)
          await secrets(one).set(acme, 's0', 'set meanwhile', undefined, PLATFORM_ACTOR);
        return replace(...args);
      });
    };
    setTimes(Infinity);
    const { rotated, failures } = await secrets(two, one).rotate();
    expect([rotated, failures]).toEqual([1, [expect.stringContaining('"s0" was set with an earlier key')]]);
    jest.restoreAllMocks();
    expect(await secrets(two, one).get(acme, 's0', [])).toBe('set meanwhile');
    setTimes(1);
    expect(await secrets(two, one).rotate()).toMatchObject({ rotated: 1, failures: [] });
    jest.restoreAllMocks();
    expect(await secrets(two).get(acme, 's0', [])).toBe('set meanwhile');
  });

  it('loses none that processes with either key set while it runs, also behind it', async () => {
    const names = await fill(6);
    const list = store.listOutdated.bind(store);
    let pages = 0;
    jest.spyOn(store, 'listOutdated').mockImplementation(async (...args) => {
      const rows = await list(...args);
      // A process that still has only the old key, in the range that is done.
      pages += 1;
      if (pages === 4) await secrets(one).set(acme, 'a-first', 'set behind it', undefined, PLATFORM_ACTOR);
      return rows;
    });
    const load = (async () => {
      for (const [i, name] of names.entries())
        await secrets(...(i % 2 ? [two, one] : [one])).set(
          other,
          name,
          `new ${name}`,
          undefined,
          PLATFORM_ACTOR,
        );
    })();
    const [{ failures }] = await Promise.all([secrets(two, one).rotate(2), load]);
    jest.restoreAllMocks();
    expect(failures).toEqual([]);
    expect(await secrets(two).get(acme, 'a-first', [])).toBe('set behind it');
    // Until a process with the old key alone has set its last secret, a rotation may find more.
    await secrets(two, one).rotate(2);
    for (const name of names) {
      expect(await secrets(two).get(acme, name, [])).toBe(`${acme}/${name}`);
      expect(await secrets(two).get(other, name, [])).toBe(`new ${name}`);
    }
  });

  it('leaves what it cannot read as it is, says why, and does the rest', async () => {
    const three = randomBytes(32);
    await secrets(three).set(acme, 'foreign', VALUE, undefined, PLATFORM_ACTOR);
    await secrets(one).set(acme, 'mine', VALUE, undefined, PLATFORM_ACTOR);
    const { rotated, failures } = await secrets(two, one).rotate(1);
    expect(rotated).toBe(1);
    expect(failures).toEqual([
      expect.stringMatching(/^Tenant [\da-f-]{36}: The secret "foreign" is encrypted with the key/),
    ]);
    expect(JSON.stringify(failures)).not.toContain('hunter2');
    expect(await secrets(three).get(acme, 'foreign', [])).toBe(VALUE);
  });

  it('needs a master key', async () => {
    await expect(secrets(undefined, one).rotate()).rejects.toThrow(/^BATON_MASTER_KEY is not set/);
  });
});
