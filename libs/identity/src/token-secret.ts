import { createHash, randomBytes } from 'node:crypto';

const FORM = /^baton_[A-Za-z0-9_-]{43}$/;
/** Enough to tell a tenant's tokens apart, too little to guess one (222 of 256 bits stay unknown). */
const PREFIX_LENGTH = 'baton_'.length + 6;

/** A new secret: `baton_` and the base64url of 32 random bytes. */
export const newSecret = (): string => `baton_${randomBytes(32).toString('base64url')}`;

/** The hex SHA-256 under which a secret is stored; undefined for what can't be one of ours. */
export function hashSecret(secret: string): string | undefined {
  return FORM.test(secret) ? createHash('sha256').update(secret).digest('hex') : undefined;
}

/** The first characters, by which a person recognises a token. */
export const prefixOf = (secret: string): string => secret.slice(0, PREFIX_LENGTH);
