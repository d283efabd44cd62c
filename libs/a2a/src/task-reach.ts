import type { Agent } from './agent.js';
import type { AllowedAgents, CallContext } from './call-context.js';
import { ProtocolError } from './errors.js';

// Which tasks and agents of its tenant a caller reaches. This file is the one place that decides it
// (docs/inside/adr/0010-principals.md).

/** What decides which tasks a caller reaches. */
export type Reacher = Pick<CallContext, 'principal' | 'scopes' | 'agents'>;

/** What decides who reaches a task. */
export interface ReachedTask {
  /** Null = made by an earlier release. */
  owner: string | null;
  agentId: string;
}

/** Whether an agent exists for a caller. @param agents that it may know of; undefined = all */
export const isAllowed = (agents: AllowedAgents | undefined, { slug }: Pick<Agent, 'slug'>): boolean =>
  agents === undefined || agents.slugs.includes(slug);

/** The same for an agent by its slug or id. */
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

/** The tasks that a caller may continue and cancel; undefined = all of its tenant. Nobody acts on a task unseen. */
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

/** A guest has no rights on the tenant's tasks, whatever its scopes. */
const has = ({ principal, scopes }: Reacher, scope: 'tasks:read' | 'tasks:write'): boolean =>
  principal.kind !== 'guest' && (scopes.includes(scope) || scopes.includes('admin'));
