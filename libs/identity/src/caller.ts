import type { AllowedAgents, Principal, Scope } from '@baton/a2a';

/** Who calls, for which tenant, and what it may do. */
export interface Caller {
  readonly tenantId: string;
  readonly principal: Principal;
  readonly scopes: readonly Scope[];
  /** When its token expires; its open calls end then. Unset: never. */
  readonly expiresAt?: Date | undefined;
  /** Identifies the token in `TokenService.refused`, which ends its open calls. Unset: it cannot be revoked. */
  readonly credential?: string;
  /** Who issued its token, if not Baton: its open calls end when the issuer is no longer trusted. */
  readonly issuer?: { readonly url: string; readonly id: string };
  /** The agents that exist for it; a verified token has only their slugs. Unset: all of its tenant. */
  readonly agents?: AllowedAgents;
  /** The limit of the token itself, besides that of its tenant. Unset: none. */
  readonly requestsPerSecond?: number;
}

/** The caller that a guard has found. Throws if the route has no guard, which is a bug. */
export function callerOf(request: object): Caller {
  const caller = (request as { user?: Caller }).user;
  if (!caller) throw new Error('callerOf: the route has no guard that finds its caller');
  return caller;
}
