import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { MASTER_KEY } from '../../api/src/admin/admin-api.fixture.js';
import { EXIT } from './exit.js';
import { baton, database, folder, json, ownMachine } from './operator.fixture.js';

const VALUE = 'sk-hunter2';
const [NEXT, STRAY] = [Buffer.alloc(32, 2).toString('base64'), Buffer.alloc(32, 3).toString('base64')];
const ANOTHER_KEY =
  /^BATON_MASTER_KEY gives the key [\da-f]{12}, and the secrets of this database are encrypted with the key [\da-f]{12}: /;

/** One command, with these master keys; nothing it says may hold a value or a key. */
async function secrets(line: string, { input = '', keys = [MASTER_KEY] } = {}) {
  const [newest = '', ...previous] = keys;
  const env = { BATON_MASTER_KEY: newest, BATON_MASTER_KEY_PREVIOUS: previous.join(', ') };
  const seen = await baton(`secrets ${line}`, { ...ownMachine(), ...env }, input);
  for (const secret of ['hunter2', MASTER_KEY, NEXT, STRAY])
    expect(seen.out + seen.err).not.toContain(secret);
  return seen;
}

beforeAll(() => json('tenants create acme'));

describe('secrets', () => {
  it('are set from standard input or a file, listed and removed, and never shown', async () => {
    expect((await secrets('list --tenant acme')).err).toMatch(/^No secrets yet: npx baton secrets set/);
    const set = await secrets('set openai --tenant acme', { input: `${VALUE}\n` });
    expect(set).toEqual({
      code: 0,
      err: '',
      out: expect.stringMatching(
        /^Secret openai of acme is set, encrypted with the key [\da-f]{12}\.$/,
      ) as string,
    });
    const file = join(folder, 'value');
    writeFileSync(file, VALUE);
    expect(await secrets(`set webhook --tenant acme --file ${file}`)).toMatchObject({
      code: 0,
      err: 'No agent can use it yet. Set what may receive it: npx baton secrets origins webhook https://… --tenant acme',
    });
    const { out } = await secrets('list --tenant acme');
    expect(out).toMatch(
      /^NAME +KEY +CREATED +UPDATED +MAY BE SENT TO\nopenai +[\da-f]{12} .* https:\/\/api\.openai\.com\nwebhook +[\da-f]{12} .* nothing$/,
    );
    const listed = JSON.parse((await secrets('list --tenant acme --json')).out) as object[];
    expect(Object.keys(listed[0]!)).toEqual(['name', 'keyId', 'origins', 'createdAt', 'updatedAt']);
    expect((await secrets('remove webhook --tenant acme')).out).toBe('Secret webhook of acme is removed.');
  });

  it('need a tenant, a value and a sane name', async () => {
    const input = VALUE;
    expect((await secrets('set openai --tenant nobody', { input })).err).toMatch(
      /^There is no tenant "nobody"/,
    );
    expect((await secrets('set a/b --tenant acme', { input })).err).toMatch(
      /The name of the secret is not valid/,
    );
    expect((await secrets('set openai --tenant acme')).err).toMatch(
      /The value of the secret "openai" has 0 bytes/,
    );
    expect((await secrets('set openai --tenant acme --file /nowhere', { input })).err).toMatch(
      /^\/nowhere cannot be read \(ENOENT\)/,
    );
    expect(
      (await secrets(`set openai ${VALUE.slice(3)}`, { input: '' }).catch(() => ({ code: 1 }))).code,
    ).toBe(EXIT.usage);
  });
});

describe('secrets rotate', () => {
  it('encrypts all secrets anew with a new key, after which the old one is not needed', async () => {
    await secrets('set openai --tenant acme', { input: VALUE });
    const early = await secrets('rotate', { keys: [NEXT] });
    expect(early).toMatchObject({ code: 1, out: '' });
    expect(early.err).toMatch(ANOTHER_KEY);
    expect(early.err).toContain('node bin/baton.cjs secrets rotate --key-lost');
    const rotated = await secrets('rotate', { keys: [NEXT, MASTER_KEY] });
    expect(rotated).toMatchObject({
      code: 0,
      out: expect.stringMatching(/^1 secrets were encrypted again/) as string,
    });
    expect(rotated.err).toMatch(/BATON_MASTER_KEY_PREVIOUS can be emptied/);
    expect(await secrets('rotate', { keys: [NEXT] })).toMatchObject({ code: 0 });
    expect((await secrets('rotate')).err).toMatch(ANOTHER_KEY);
  });

  it('finds the key that `npm start` has made', async () => {
    const home = join(folder, 'home');
    mkdirSync(home);
    writeFileSync(join(home, 'runtime.json'), JSON.stringify({ databaseUrl: database.url, redisUrl: null }));
    writeFileSync(join(home, 'master-key'), `${NEXT}\n`);
    expect(await baton('secrets rotate', { BATON_HOME: home })).toMatchObject({ code: 0 });
  });

  it('goes on without a key that is lost, and names what is lost with it', async () => {
    const lost = await secrets('rotate --key-lost', { keys: [STRAY] });
    expect(lost).toMatchObject({ code: 1, out: expect.stringMatching(/^0 secrets/) as string });
    expect(lost.err).toMatch(/The secret "openai" is encrypted with the key [\da-f]{12}, which is unknown/);
    expect(lost.err).toMatch(/The key of this database is now [\da-f]{12}\. Set these secrets again\./);
    expect((await secrets('rotate', { keys: [NEXT] })).err).toMatch(ANOTHER_KEY);
  });

  it('needs a valid key', async () => {
    const error = async (...keys: string[]) => (await secrets('rotate', { keys })).err;
    expect(await error()).toMatch(/^BATON_MASTER_KEY is not set, .*openssl rand -base64 32/);
    expect(await error('hunter')).toMatch(
      /^BATON_MASTER_KEY is not valid: set it to the base64 of 32 random bytes/,
    );
    expect(await error(STRAY, 'nonsense')).toMatch(
      /^BATON_MASTER_KEY_PREVIOUS is not valid: set it to earlier values/,
    );
  });
});
