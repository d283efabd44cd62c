import { randomBytes } from 'node:crypto';
import { inspect } from 'node:util';
import { SecretBox } from './secret-box.js';
import { SecretError } from './secret-error.js';

const id = { tenantId: '0198c0de-0000-7000-8000-000000000001', name: 'openai' };
const VALUE = 'sk-hunter2 ü😀';

const box = (masterKey: Buffer | undefined, ...previousMasterKeys: Buffer[]): SecretBox =>
  new SecretBox({ masterKey, previousMasterKeys });

function refusal(act: () => unknown): string {
  try {
    act();
  } catch (error) {
    expect(error).toBeInstanceOf(SecretError);
    expect(inspect(error, { depth: 9 })).not.toContain('hunter2');
    return (error as Error).message;
  }
  throw new Error('nothing was refused');
}

describe('a secret in its box', () => {
  const [one, two] = [randomBytes(32), randomBytes(32)];

  it('is read again, and is different every time it is sealed', () => {
    const sealed = [box(one).seal(id, VALUE), box(one).seal(id, VALUE)] as const;
    expect(sealed.map((each) => box(one).open(id, each))).toEqual([VALUE, VALUE]);
    expect(sealed[0].nonce).toHaveLength(12);
    expect(sealed[0].nonce).not.toEqual(sealed[1].nonce);
    expect(sealed[0].ciphertext).not.toEqual(sealed[1].ciphertext);
    expect(Buffer.from(sealed[0].ciphertext).toString('latin1')).not.toContain('hunter2');
  });

  it('is sealed with the newest key, and read with each key of the ring', () => {
    const old = box(one).seal(id, VALUE);
    const ring = box(two, one);
    expect(ring.open(id, old)).toBe(VALUE);
    const sealed = ring.seal(id, VALUE);
    expect(sealed.keyId).toBe(ring.keyId);
    expect(sealed.keyId).not.toBe(old.keyId);
    expect(box(two).open(id, sealed)).toBe(VALUE);
    expect(box(undefined, one).open(id, old)).toBe(VALUE);
  });

  it('cannot be read with another key: the message names the secret and the key, not the value', () => {
    const sealed = box(one).seal(id, VALUE);
    expect(refusal(() => box(two).open(id, sealed))).toBe(
      `The secret "openai" is encrypted with the key ${sealed.keyId}, which is unknown: add that key to BATON_MASTER_KEY_PREVIOUS, or set the secret again.`,
    );
    // A row that claims the key it was not made with.
    const lied = { ...sealed, keyId: box(two).keyId };
    expect(refusal(() => box(two).open(id, lied))).toMatch(/^The secret "openai" cannot be decrypted/);
  });

  it('cannot be read under another tenant or name, or after a bit of it was changed', () => {
    const sealed = box(one).seal(id, VALUE);
    const tenantId = id.tenantId.replace(/1$/, '2');
    const flipped = (bytes: Uint8Array): Uint8Array =>
      Uint8Array.from(bytes, (byte, i) => (i === 3 ? byte ^ 1 : byte));
    const attempts = [
      () => box(one).open({ ...id, tenantId }, sealed),
      () => box(one).open({ ...id, name: 'openai2' }, sealed),
      () => box(one).open(id, { ...sealed, nonce: flipped(sealed.nonce) }),
      () => box(one).open(id, { ...sealed, ciphertext: flipped(sealed.ciphertext) }),
      () => box(one).open(id, { ...sealed, ciphertext: sealed.ciphertext.subarray(0, 20) }),
      () => box(one).open(id, { ...sealed, ciphertext: new Uint8Array() }),
    ];
    for (const attempt of attempts) expect(refusal(attempt)).toMatch(/cannot be decrypted: it was changed/);
  });

  it('needs a master key, and says how to make one', () => {
    const sealed = box(one).seal(id, VALUE);
    for (const act of [
      () => box(undefined).seal(id, VALUE),
      () => box(undefined).open(id, sealed),
      () => box(undefined, two).keyId,
    ]) {
      expect(refusal(act)).toMatch(/^BATON_MASTER_KEY is not set, .*`openssl rand -base64 32`/);
    }
  });

  it('shows no key when the box is printed', () => {
    for (const form of ['hex', 'base64'] as const) {
      const printed = inspect(box(one, two), { depth: 9, showHidden: true }) + JSON.stringify(box(one, two));
      expect(printed).not.toContain(one.toString(form).slice(0, 6));
    }
  });
});
