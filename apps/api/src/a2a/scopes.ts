import { type OperationName, ProtocolError, type Scope } from '@baton/a2a';

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

/** Throws `forbidden`, naming the scope that is missing. `admin` includes all others. */
export function requireScopeFor(operation: OperationName, scopes: readonly Scope[]): void {
  const enough = SCOPES_OF[operation];
  if (scopes.includes('admin') || enough.some((scope) => scopes.includes(scope))) return;
  const missing = enough.join(' or ');
  throw new ProtocolError('forbidden', `the token lacks the scope ${missing}`, {
    metadata: { missingScope: enough[0] ?? '' },
  });
}
