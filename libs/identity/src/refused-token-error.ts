import { ProtocolError } from '@baton/a2a';
import type { Holder } from './token.service.js';
import type { RefusedToken } from './token-state.js';

const REASONS: Record<RefusedToken, string> = {
  unknown: 'the token is not known',
  expired: 'the token has expired',
  revoked: 'the token was revoked',
  rotated: 'the token was rotated: use its new secret',
  changed: 'the token has fewer rights now: send the request again',
  untrusted: 'the issuer of the token is no longer trusted',
};

/** `unauthenticated`, for a token that was valid once. The holder is for the audit log. The answer to the caller does not have it. */
export class RefusedTokenError extends ProtocolError {
  constructor(
    reason: RefusedToken,
    readonly holder?: Holder,
  ) {
    super('unauthenticated', REASONS[reason]);
  }
}
