import { ProtocolError } from './errors.js';

/** What a tenant may want to do itself. */
export const TENANT_SCOPES = [
  'agents:call',
  'tasks:read',
  'tasks:write',
  'tasks:approve',
  'agents:read',
  'agents:write',
  'secrets:write',
  'schedules:write',
] as const;
export const SCOPES = [...TENANT_SCOPES, 'audit:read', 'admin'] as const;
/** What a token may do. `admin` includes all others. */
export type Scope = (typeof SCOPES)[number];

/** Whoever may know of an agent may read its cards: who reads agents or tasks, or calls agents. */
export const CARD_SCOPES = ['agents:read', 'tasks:read', 'agents:call'] as const satisfies readonly Scope[];

/** Throws `forbidden`, naming what is missing, unless the caller has `admin` or one of the scopes that are `enough`. */
export function requireScope(enough: readonly Scope[], scopes: readonly Scope[]): void {
  if (scopes.includes('admin') || enough.some((scope) => scopes.includes(scope))) return;
  throw new ProtocolError('forbidden', `the token lacks the scope ${enough.join(' or ')}`, {
    metadata: { missingScope: enough[0] ?? '' },
  });
}
