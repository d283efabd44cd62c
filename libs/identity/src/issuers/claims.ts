import { memberOf, type Principal, type Scope } from '@baton/a2a';
import type { TrustedIssuer } from '@baton/database';
import type { JWTPayload } from 'jose';
import { createHash } from 'node:crypto';

/** Maximum characters of a claim that identifies users. OpenID allows 255. */
const MAX_SUBJECT = 1024;
/** Claims that are lists of names, separated by spaces (RFC 8693 §4.2, Microsoft Entra). */
const SPACED_CLAIMS: ReadonlySet<string> = new Set(['scope', 'scp']);

/**
 * A claim of a verified token.
 * @param name a top-level claim, or the path of a nested one as a JSON pointer (RFC 6901): `/realm_access/roles`
 */
function claimOf(claims: JWTPayload, name: string): unknown {
  const path = name.startsWith('/') ? name.slice(1).split('/').map(memberOf) : [name];
  return path.reduce<unknown>(
    (value, key) =>
      typeof value === 'object' && value !== null && !Array.isArray(value) && Object.hasOwn(value, key)
        ? (value as Record<string, unknown>)[key]
        : undefined,
    claims,
  );
}

/** Whether a claim has a value: is equal to it, or is a list that contains it. */
export function hasValue(claims: JWTPayload, claim: string, value: string): boolean {
  const found = claimOf(claims, claim);
  if (Array.isArray(found)) return found.some((item) => isEqual(item, value));
  if (typeof found === 'string' && SPACED_CLAIMS.has(claim)) return found.split(' ').includes(value);
  return isEqual(found, value);
}

const isEqual = (found: unknown, value: string): boolean =>
  found === value || ((typeof found === 'boolean' || typeof found === 'number') && String(found) === value);

/** What the user of a verified token may do: what all users of the issuer may, and what its claims grant. */
export function scopesOf({ scopes, grants }: TrustedIssuer, claims: JWTPayload): Scope[] {
  const granted = grants.filter(({ claim, value }) => hasValue(claims, claim, value));
  return [...new Set([scopes, ...granted.map((grant) => grant.scopes)].flat())];
}

/**
 * The principal of a verified token. Undefined: the token has no such subject. The key is a hash, because subjects are often
 * names or addresses of people. The name of the claim is part of it: the same text in another claim may be another user.
 */
export function userPrincipal(
  { issuer, subjectClaim }: TrustedIssuer,
  claims: JWTPayload,
): Principal | undefined {
  const subject = claimOf(claims, subjectClaim);
  if (typeof subject !== 'string' || subject === '' || subject.length > MAX_SUBJECT) return undefined;
  const hash = createHash('sha256').update(JSON.stringify([issuer, subjectClaim, subject]));
  return { kind: 'user', key: `user:${hash.digest('base64url')}` };
}
