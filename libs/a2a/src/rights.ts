import { ProtocolError } from './protocol-error.js';

// Who calls, with which scopes, and which tasks and agents of its tenant that caller reaches. This file is the one place
// that decides it (docs/inside/adr/0010-principals.md).

/** Who makes a call. Every task is kept with the key of the principal that made it. */
export interface Principal {
  readonly kind: 'token' | 'user' | 'guest' | 'schedule' | 'operator';
  /** Short, opaque and without personal data: `token:<id of the token>`, `guest:<host>:<hash>`. */
  readonly key: string;
}

/** The agents that a caller may read and call. */
export interface AllowedAgents {
  readonly slugs: readonly string[];
  /** Ids of existing and of deleted agents. */
  readonly ids: readonly string[];
}

/** The principal of a bearer token. */
export const tokenPrincipal = (tokenId: string): Principal => ({ kind: 'token', key: `token:${tokenId}` });

/** The owner of the tasks of a schedule whose author is not known. */
export const schedulePrincipal = (scheduleId: string): Principal => ({
  kind: 'schedule',
  key: `schedule:${scheduleId}`,
});

/** The scopes of daily work. The further ones of `SCOPES` read recorded content or administer. */
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
export const SCOPES = [...TENANT_SCOPES, 'records:read', 'audit:read', 'admin'] as const;
/** What a token may do. `admin` includes all others. */
export type Scope = (typeof SCOPES)[number];

/** One of these scopes allows a caller to read the cards of agents. */
export const CARD_SCOPES = ['agents:read', 'tasks:read', 'agents:call'] as const satisfies readonly Scope[];

/** Throws `forbidden`, naming what is missing, unless the caller has `admin` or one of the scopes that are `enough`. */
export function requireScope(enough: readonly Scope[], scopes: readonly Scope[]): void {
  if (hasScope(enough, scopes)) return;
  throw new ProtocolError('forbidden', `the token lacks the scope ${enough.join(' or ')}`, {
    metadata: { missingScope: enough[0] ?? '' },
  });
}

/** Whether one of the scopes is enough. `admin` always is. */
export const hasScope = (enough: readonly Scope[], scopes: readonly Scope[]): boolean =>
  scopes.includes('admin') || enough.some((scope) => scopes.includes(scope));

/** What decides which tasks a caller reaches. */
export interface Reacher {
  principal: Principal;
  scopes: readonly Scope[];
  /** The agents that exist for the caller; unset = all of its tenant. */
  agents?: AllowedAgents | undefined;
}

/** What decides who reaches a task. */
export interface ReachedTask {
  /** Null = made by an earlier release. */
  owner: string | null;
  agentId: string;
}

/** Whether an agent exists for a caller. @param agents that it may read; undefined = all */
export const isAllowed = (agents: AllowedAgents | undefined, { slug }: { slug: string }): boolean =>
  agents === undefined || agents.slugs.includes(slug);

/** Whether an agent is allowed, by its slug or id. */
export const isAllowedName = (agents: AllowedAgents | undefined, slugOrId: string): boolean =>
  agents === undefined || agents.slugs.includes(slugOrId) || agents.ids.includes(slugOrId);

/** The tasks of one principal, as stores filter by them. */
export interface OwnTasks {
  owner: string;
  /** Also the tasks of earlier releases, which have no owner. */
  unowned: boolean;
}

/** The tasks that the caller itself has made. Tasks without an owner belong to every caller but guests. */
export const ownTasks = ({ principal }: Pick<Reacher, 'principal'>): OwnTasks => ({
  owner: principal.key,
  unowned: principal.kind !== 'guest',
});

/** The tasks that a caller sees; undefined = all of its tenant. */
export const visibleTasks = (caller: Reacher): OwnTasks | undefined =>
  has(caller, 'tasks:read') ? undefined : ownTasks(caller);

/** The tasks that a caller may continue and cancel; undefined = all of its tenant. A caller can only act on tasks that it can read. */
export const writableTasks = (caller: Reacher): OwnTasks | undefined =>
  has(caller, 'tasks:read') && has(caller, 'tasks:write') ? undefined : ownTasks(caller);

/** Whether a task belongs to these. @param owner null = made by an earlier release */
export const isAmong = (tasks: OwnTasks | undefined, owner: string | null): boolean =>
  tasks === undefined || (owner === null ? tasks.unowned : owner === tasks.owner);

/** Whether the caller sees a task. For a caller that does not, the task does not exist. */
export const canSee = (caller: Reacher, { owner, agentId }: ReachedTask): boolean =>
  isAmong(visibleTasks(caller), owner) && (caller.agents?.ids.includes(agentId) ?? true);

/** Throws `forbidden` for a task that the caller sees and may not act on. */
export function assertWritable(caller: Reacher, owner: string | null): void {
  if (isAmong(writableTasks(caller), owner)) return;
  throw new ProtocolError(
    'forbidden',
    'the token lacks the scope tasks:write: without it, only tasks that it has made can be continued or canceled',
    { metadata: { missingScope: 'tasks:write' } },
  );
}

/** A guest never has rights on the tenant's tasks. */
const has = ({ principal, scopes }: Reacher, scope: 'tasks:read' | 'tasks:write'): boolean =>
  principal.kind !== 'guest' && (scopes.includes(scope) || scopes.includes('admin'));
