import type { ApiToken, FoundToken } from '@baton/database';
import { clock } from '@baton/telemetry';

/** Why a token is refused. */
export type RefusedToken = 'unknown' | 'expired' | 'revoked' | 'rotated' | 'changed' | 'untrusted';

/** Whether a token is valid, for people. */
export function tokenState(
  token: Pick<ApiToken, 'revokedAt' | 'expiresAt'>,
): 'revoked' | 'expired' | 'active' {
  const reason = refusalOf(token);
  return reason === 'revoked' || reason === 'expired' ? reason : 'active';
}

/** Why a token is invalid now. */
export function refusalOf({
  revokedAt,
  expiresAt,
  secretUntil,
}: Pick<FoundToken, 'revokedAt' | 'expiresAt' | 'secretUntil'>): RefusedToken | undefined {
  const now = clock.now();
  if (revokedAt) return 'revoked';
  if (expiresAt && expiresAt.getTime() <= now) return 'expired';
  return secretUntil && secretUntil.getTime() <= now ? 'rotated' : undefined;
}
