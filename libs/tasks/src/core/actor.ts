import type { CallContext } from '@baton/a2a';
import type { Actor } from '@baton/database';

/** The actor of a call, for the audit log. */
export const actorOf = ({
  principal,
  address,
  requestId,
}: Pick<CallContext, 'principal' | 'address' | 'requestId'>): Actor => ({
  ...principal,
  ...(address !== undefined && { address }),
  requestId,
});
