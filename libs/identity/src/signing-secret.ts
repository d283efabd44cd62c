import { randomBytes } from 'node:crypto';

/** The prefix of a secret of Standard Webhooks. The base64 of random bytes follows. */
export const SIGNING_PREFIX = 'whsec_';
const [MIN_BYTES, MAX_BYTES] = [24, 64];
const BASE64 = /^[A-Za-z0-9+/]+={0,2}$/;

/** A new secret for `webhook-signature`. */
export const newSigningSecret = (): string => SIGNING_PREFIX + randomBytes(32).toString('base64');

/** Whether a text is meant as a secret for `webhook-signature`. */
export const isSigningSecret = (text: string): boolean => text.startsWith(SIGNING_PREFIX);

/** The fault of such a secret, as the end of a sentence after the field's name; undefined if there is none. */
export function signingSecretProblem(secret: string): string | undefined {
  const text = secret.slice(SIGNING_PREFIX.length);
  const { length } = Buffer.from(text, 'base64');
  if (isSigningSecret(secret) && BASE64.test(text) && length >= MIN_BYTES && length <= MAX_BYTES)
    return undefined;
  return `must be ${SIGNING_PREFIX} and the base64 of ${MIN_BYTES} to ${MAX_BYTES} random bytes`;
}
