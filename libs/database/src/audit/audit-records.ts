import type { Principal } from '@baton/a2a';

/** Every action of the audit log, and what it means, for docs/operating/audit.md. */
export const AUDIT_ACTIONS = {
  'tenant.create': 'A tenant was created.',
  'tenant.update': 'Settings of a tenant were changed.',
  'tenant.suspend': 'A tenant was suspended.',
  'tenant.resume': 'The suspension of a tenant ended.',
  'tenant.delete':
    'The deletion of a tenant began. Its records are deleted, too. This one belongs to the platform.',
  'tenant.export': 'The export of a tenant was begun.',
  'tenant.import': 'A tenant was made of the export of another one.',
  'limits.change': 'Limits of a tenant were set, or reset to the default.',
  'token.create': 'A token was issued.',
  'token.update': 'The rights of a token were changed. `detail` has the new ones.',
  'token.rotate': 'A token got another secret.',
  'token.revoke': 'A token was revoked.',
  'operator-token.create': 'A token of an operator was issued.',
  'operator-token.revoke': 'A token of an operator was revoked.',
  'secret.set': 'A secret was set. The record has no value.',
  'secret.origins': 'The destinations that may receive a secret were set.',
  'secret.delete': 'A secret was removed.',
  'secret.rotate': 'All secrets were encrypted again with the newest master key.',
  'agent.create': 'An agent was added to the catalog.',
  'agent.update': 'An agent was changed, enabled, disabled or restored. `detail` has the new version.',
  'agent.next': 'A version of an agent got the label `next`, or another share. `detail` has both.',
  'agent.promote': 'The version with the label `next` became the stable one. `detail` has the new version.',
  'agent.withdraw':
    'A version lost the label `next`. If Baton took it, `detail` has how many runs of both versions failed.',
  'agent.erase': 'The contents of an earlier version were erased. `detail` has the version.',
  'agent.delete': 'An agent was removed from the catalog.',
  'schedule.create': 'A schedule was created.',
  'schedule.update': 'A schedule was changed, paused or resumed. `detail` has the new state.',
  'schedule.delete': 'A schedule was removed.',
  'schedule.run': 'A task was created from a schedule on demand.',
  'webhook.create': 'A webhook was created. `detail` has its URL, agents and states.',
  'webhook.update': 'A webhook was changed. `detail` has the new state.',
  'webhook.rotate': 'A webhook got another signing secret.',
  'webhook.test': 'A webhook was called to try it.',
  'webhook.delete': 'A webhook was removed.',
  'cap.set': 'A spending cap was set or changed. `detail` has whom it bounds, and the amount in millionths.',
  'cap.warning':
    '80 % of a spending cap are used, for the first time in its period. `detail` has the amounts in millionths.',
  'cap.delete': 'A spending cap was removed.',
  'connection.begin':
    'A sign-in at a server that agents call was begun. `detail` has the URL of the server, and the agent.',
  'connection.sign-in': 'A tenant, or the caller in `detail`, was signed in at a server that agents call.',
  'connection.end':
    'A sign-in is over, because the server or its authorization server refuses the tokens. `detail` has the reason.',
  'connection.sign-out': 'A tenant, or the caller in `detail`, was signed out.',
  'tool.called':
    'An agent called a tool, or a remote agent, with a sign-in. `detail` has whose it is, the task and its caller.',
  'host.bind': 'A host name was bound to an agent.',
  'host.unbind': 'The binding of a host name was removed.',
  'issuer.add': 'An OpenID provider was trusted.',
  'issuer.remove': 'An OpenID provider is no longer trusted.',
  'approval.given': 'A message answered a task that waited for approval. The task has the answer.',
  'task.continue': 'A failed task was continued. `detail` has the task that continues it.',
  'task.cancel': 'A caller other than its owner canceled a task.',
  'task.resume': 'A parked task was resumed.',
  'bulk.begin': 'An operation on many tasks was begun. `detail` has the action and the filter.',
  'bulk.cancel': 'An operation on many tasks was canceled.',
  'push.set':
    'A caller other than the owner of a task set one of its push configs. `detail` has the origin of the receiver.',
  'push.delete': 'A caller other than the owner of a task removed one of its push configs.',
  'dead-letter.redeliver': 'The message of a dead run was sent again.',
  'push.redeliver': 'Push configs of a task that were given up are delivered again. `detail` has their ids.',
  'signin.refused':
    'A request with an invalid token was refused. A token that was valid once is in the log of its tenant.',
  'access.refused': 'A request was refused because its token lacks a scope.',
  'system-key.enforce':
    'The database asks for the key of the scope of all tenants. `detail` has how many keys it takes.',
  'system-key.release': 'The database no longer asks for that key.',
  'audit-log.enforce': 'Only the owner of the tables may delete records of this log.',
  'audit-log.release': 'Processes of release 0.2.0 may delete records of this log again.',
  'backup.create': 'A backup of the whole database was written.',
  'backup.restore': 'A backup was restored into this database.',
} as const;

export type AuditAction = keyof typeof AUDIT_ACTIONS;

/** The tenant of records about the platform itself. No tenant has this id. */
export const PLATFORM = '00000000-0000-0000-0000-000000000000';

/** Who acts, and from where. */
export interface Actor {
  kind: Principal['kind'] | 'agent' | 'platform' | 'unknown';
  /** Key of the principal. */
  key: string;
  /** For people. Unset: the name and the prefix of a tenant's token, if it is one. */
  name?: string;
  /** IP address of the caller. Only its network is stored. */
  address?: string;
  /** Where a caller without an address is, such as `command line`. */
  source?: string;
  requestId?: string;
}

/** A process of Baton itself, without a caller. */
export const PLATFORM_ACTOR: Actor = { kind: 'platform', key: 'platform' };

/** The operator at the command line. */
export const OPERATOR_ACTOR: Actor = { kind: 'operator', key: 'operator', source: 'command line' };

export type AuditOutcome = 'ok' | 'refused';

/** The target of the action. Never a secret value. */
export interface AuditTarget {
  kind:
    | 'tenant'
    | 'token'
    | 'issuer'
    | 'secret'
    | 'agent'
    | 'schedule'
    | 'webhook'
    | 'cap'
    | 'connection'
    | 'tool'
    | 'remote-agent'
    | 'host'
    | 'task'
    | 'bulk-operation'
    | 'run'
    | 'database'
    | 'route';
  /** Name or id. */
  name: string;
}

/** A record to write. */
export interface NewAuditRecord {
  /** A uuid, for a record that is written once however often it is asked for. Default: a new one. */
  id?: string;
  action: AuditAction;
  target: AuditTarget;
  by: Actor;
  outcome?: AuditOutcome;
  /** Facts about the change. Never a secret value, and no text of a message. */
  detail?: Readonly<Record<string, unknown>>;
}

/** A record as it is stored. */
export interface AuditRecord {
  tenantId: string;
  id: string;
  at: Date;
  actor: { kind: Actor['kind']; key: string; name: string | null };
  source: string | null;
  requestId: string | null;
  action: string;
  target: { kind: string; name: string };
  outcome: AuditOutcome;
  detail: Record<string, unknown>;
}

/** Called with each record after the transaction that wrote it. */
export type AuditListener = (record: AuditRecord) => void;

/** A record as programs get it: over HTTP, from the command line and on standard output. */
export const auditJson = ({ tenantId, at, requestId, ...record }: AuditRecord) => ({
  id: record.id,
  at: at.toISOString(),
  tenant_id: tenantId === PLATFORM ? null : tenantId,
  actor: record.actor,
  source: record.source,
  request_id: requestId,
  action: record.action,
  target: record.target,
  outcome: record.outcome,
  detail: record.detail,
});
