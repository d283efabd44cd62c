import type { Scope } from '@baton/a2a';
import type { OperatorRole } from '@baton/database';
import { SetMetadata } from '@nestjs/common';

/** Callers that may use a route without a token. A route that declares nothing requires one. */
export type Access = 'public' | 'optional-token' | 'guests' | 'operator';

export const ACCESS = Symbol('who may call without a token');
export const COUNTED = Symbol('whether requests to a public route are counted');
export const ROLES = Symbol('roles of operators that may call besides full');
export const PROTECTED_RESOURCE = Symbol('whether a refused caller learns where to sign in');
export const SCOPES = Symbol('scopes of which the token needs one');
export const MORE_SCOPES = Symbol('scopes of which the token needs one as well');

/** Open to all callers. Ignores the token, and counts no requests. */
export const Public = () => SetMetadata(ACCESS, 'public' satisfies Access);

/** For public routes that ask Postgres: requests count as those without a valid token. */
export const Counted = () => SetMetadata(COUNTED, true);

/** Open to all callers, but a token that is sent must be valid. At a public host, callers without one are its guests. */
export const OptionalToken = () => SetMetadata(ACCESS, 'optional-token' satisfies Access);

/**
 * For callers with a token, and for guests at a public host. A bound host that is not public accepts only tokens of its
 * tenant.
 */
export const AllowGuests = () => SetMetadata(ACCESS, 'guests' satisfies Access);

/** For operators, with a token of theirs. Tokens of tenants are refused. Needs the role `full`, unless `OperatorRoles` names others. */
export const OperatorOnly = () => SetMetadata(ACCESS, 'operator' satisfies Access);

/** Tokens of operators with one of these roles may use the route as well as those with `full`. */
export const OperatorRoles = (...roles: readonly OperatorRole[]) => SetMetadata(ROLES, roles);

/** A caller without a valid token learns where to sign in, if its tenant trusts issuers (RFC 9728). */
export const ProtectedResource = () => SetMetadata(PROTECTED_RESOURCE, true);

/** The token needs one of these scopes, or `admin`. */
export const RequireScope = (...scopes: readonly Scope[]) => SetMetadata(SCOPES, scopes);

/** The token needs one of these as well, or `admin`. */
export const RequireScopeToo = (...scopes: readonly Scope[]) => SetMetadata(MORE_SCOPES, scopes);
