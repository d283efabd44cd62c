import { type OperationName, ProtocolError, type Scope } from '@baton/a2a';
import type { FastifyRequest } from 'fastify';

const READ: readonly Scope[] = ['tasks:read', 'agents:call'];
const CALL: readonly Scope[] = ['agents:call'];

/** The scopes of which a token needs one, by operation. A token that may call may also read what came of it. */
const SCOPES_OF: Record<OperationName, readonly Scope[]> = {
  sendMessage: CALL,
  sendStreamingMessage: CALL,
  cancelTask: CALL,
  pushNotificationConfig: CALL,
  getTask: READ,
  listTasks: READ,
  subscribeToTask: READ,
  getExtendedAgentCard: READ,
};

/** Whether an operation only reads: of one that changes something, the change is done when its answer is read. */
export const isRead = (operation: OperationName): boolean => SCOPES_OF[operation] === READ;

/** Throws `forbidden`, naming the scope that is missing. `admin` includes all others. */
export function requireScopeFor(operation: OperationName, scopes: readonly Scope[]): void {
  requireScope(SCOPES_OF[operation], scopes);
}

/** Throws `forbidden`, naming what is missing, unless the token has one of the scopes that are `enough`. */
export function requireScope(enough: readonly Scope[], scopes: readonly Scope[]): void {
  if (scopes.includes('admin') || enough.some((scope) => scopes.includes(scope))) return;
  const missing = enough.join(' or ');
  throw new ProtocolError('forbidden', `the token lacks the scope ${missing}`, {
    metadata: { missingScope: enough[0] ?? '' },
  });
}

/**
 * Throws `unauthenticated` where a caller without a token, let in by the host it called, asks for more than
 * tasks whose ids it knows: everyone who has none is the same caller, and a list would show them each other's.
 */
export function requireTokenFor(operation: OperationName, { headers }: FastifyRequest): void {
  if (operation !== 'listTasks' || headers.authorization !== undefined) return;
  throw new ProtocolError('unauthenticated', 'a bearer token is required to list tasks');
}
