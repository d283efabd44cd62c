import type { Scope } from '@baton/a2a';

/** Who a token speaks for. */
export interface Caller {
  tenantId: string;
  tokenId: string;
  scopes: readonly Scope[];
}

/** The caller that BearerGuard has found. Throws if the route has no such guard, which is a bug. */
export function callerOf(request: object): Caller {
  const caller = (request as { user?: Caller }).user;
  if (!caller) throw new Error('callerOf: the route lacks BearerGuard');
  return caller;
}
