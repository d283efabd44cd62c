import { masterKeyId } from '@baton/config';
import type { SealedSecret, SecretKey } from '@baton/database';
import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';
import { SecretError } from './secret-error.js';

const CIPHER = 'aes-256-gcm';
/** The size of AES-GCM's nonce (NIST SP 800-38D §8.2). */
const NONCE_BYTES = 12;
/** The full size of its tag. */
const TAG_BYTES = 16;

/** The master key that encrypts, and earlier ones that still decrypt; 32 bytes each. */
export interface CipherKeys {
  masterKey: Buffer | undefined;
  previousMasterKeys: readonly Buffer[];
}

/**
 * Encrypts and decrypts secrets with AES-256-GCM (NIST SP 800-38D). Tenant and name are authenticated with each
 * (additional authenticated data), so a row that is copied to another tenant or name cannot be decrypted there.
 */
export class SecretBox {
  // `#private`, so that printing or logging a box shows no key.
  readonly #newest: Buffer | undefined;
  readonly #keys: ReadonlyMap<string, Buffer>;

  constructor({ masterKey, previousMasterKeys }: CipherKeys) {
    const keys = masterKey ? [masterKey, ...previousMasterKeys] : previousMasterKeys;
    this.#newest = masterKey;
    this.#keys = new Map(keys.map((key) => [masterKeyId(key), key]));
  }

  /** The id of the key that encrypts. Throws `SecretError` if there is none. */
  get keyId(): string {
    return masterKeyId(this.newest());
  }

  /** Whether it can read what the key of this id has encrypted. */
  knows(keyId: string): boolean {
    return this.#keys.has(keyId);
  }

  /** Throws `SecretError` if there is no master key. */
  seal(id: SecretKey, value: string): SealedSecret {
    const key = this.newest();
    const nonce = randomBytes(NONCE_BYTES);
    const cipher = createCipheriv(CIPHER, key, nonce, { authTagLength: TAG_BYTES });
    cipher.setAAD(boundTo(id));
    const ciphertext = Buffer.concat([cipher.update(value, 'utf8'), cipher.final(), cipher.getAuthTag()]);
    return { keyId: masterKeyId(key), nonce, ciphertext };
  }

  /** Throws `SecretError`, naming the secret and what to do, if the key is missing or is not the right one. */
  open(id: SecretKey, { keyId, nonce, ciphertext }: SealedSecret): string {
    const key = this.#keys.get(keyId);
    if (!key) {
      if (!this.#newest) this.newest();
      throw new SecretError(
        `The secret "${id.name}" is encrypted with the key ${keyId}, which is unknown: add that key to BATON_MASTER_KEY_PREVIOUS, or set the secret again.`,
      );
    }
    try {
      const decipher = createDecipheriv(CIPHER, key, nonce, { authTagLength: TAG_BYTES });
      decipher.setAAD(boundTo(id));
      decipher.setAuthTag(ciphertext.subarray(-TAG_BYTES));
      return decipher.update(ciphertext.subarray(0, -TAG_BYTES), undefined, 'utf8') + decipher.final('utf8');
    } catch {
      throw new SecretError(
        `The secret "${id.name}" cannot be decrypted: it was changed in the database or copied from another place; set it again.`,
      );
    }
  }

  private newest(): Buffer {
    if (this.#newest) return this.#newest;
    throw new SecretError(
      'BATON_MASTER_KEY is not set, so secrets cannot be used: set it to the base64 of 32 random bytes, e.g. from `openssl rand -base64 32`, the same for every process.',
    );
  }
}

/** All ids of tenants have the same length, so no two secrets give the same text. */
const boundTo = ({ tenantId, name }: SecretKey): Buffer => Buffer.from(`baton secret 1 ${tenantId} ${name}`);
