import { OPERATIONS, type OperationName, ProtocolError, type Scope } from '@baton/a2a';
import type { FastifyRequest } from 'fastify';

/** Throws `forbidden`, naming the scope that is missing. */
export function requireScopeFor(operation: OperationName, scopes: readonly Scope[]): void {
  requireScope(OPERATIONS[operation].scopes, scopes);
}

/** Throws `forbidden`, naming what is missing, unless the token has `admin` or one of the scopes that are `enough`. */
export function requireScope(enough: readonly Scope[], scopes: readonly Scope[]): void {
  if (scopes.includes('admin') || enough.some((scope) => scopes.includes(scope))) return;
  const missing = enough.join(' or ');
  throw new ProtocolError('forbidden', `the token lacks the scope ${missing}`, {
    metadata: { missingScope: enough[0] ?? '' },
  });
}

/** Throws `unauthenticated` where a guest, a caller without a token, calls an operation that requires one. */
export function requireTokenFor(operation: OperationName, { headers }: FastifyRequest): void {
  const { tokenRequired } = OPERATIONS[operation];
  if (tokenRequired === undefined || headers.authorization !== undefined) return;
  throw new ProtocolError('unauthenticated', `a bearer token is required ${tokenRequired}`);
}
