import type { AllowedAgents, Principal, Scope, TaskState } from '@baton/a2a';
import type { Actor } from '../audit/audit-records.js';

/** The action on each task. */
export const BULK_ACTIONS = ['cancel', 'resume', 'continue', 'send-again', 'delete'] as const;
export type BulkAction = (typeof BULK_ACTIONS)[number];

/** Which tasks; unset = all. */
export interface BulkFilter {
  agentId?: string;
  contextId?: string;
  state?: TaskState;
  /** ISO 8601. Status not older than this. */
  since?: string;
  /** ISO 8601. Status older than this. */
  until?: string;
  /** Key of the principal that has made it. */
  owner?: string;
  /** True: only tasks that are parked. */
  parked?: boolean;
  /** A text in its error, in upper or lower case. */
  error?: string;
  /** Version of its agent that the last attempt has run. */
  version?: number;
}

/** Whose tasks an operation may change: the rights that its caller had. */
export interface BulkCaller {
  principal: Principal;
  scopes: readonly Scope[];
  agents?: AllowedAgents | undefined;
}

/** How far the tasks are listed: position in the states, and the last task of that state. */
export interface BulkCursor {
  state: number;
  after?: { statusAt: string; taskId: string };
}

/** A task to which it could not be done. */
export interface BulkFailure {
  taskId: string;
  reason: string;
}

export type BulkState = 'running' | 'done' | 'canceled';

/** An operation on many tasks of a tenant. */
export interface BulkOperation {
  tenantId: string;
  id: string;
  action: BulkAction;
  filter: BulkFilter;
  caller: BulkCaller;
  actor: Actor;
  state: BulkState;
  cursor: BulkCursor | null;
  /** No further tasks will be found. */
  isListed: boolean;
  /** Ids of tasks that are found and not worked at yet. */
  pending: string[];
  /** Numbers of tasks. */
  found: number;
  done: number;
  /** In a state in which there was nothing to do any more. */
  skipped: number;
  failed: number;
  /** The first of those that failed. */
  failures: BulkFailure[];
  /** Why it waits before it continues. Null: it does not. */
  waitsFor: string | null;
  createdAt: Date;
  finishedAt: Date | null;
}

/** An operation at which a worker works, until another worker claims it. */
export interface ClaimedBulk extends BulkOperation {
  /** Fencing token. */
  claim: number;
}

/** What a worker has done of an operation. */
export type BulkProgress = Pick<
  BulkOperation,
  'cursor' | 'isListed' | 'pending' | 'found' | 'done' | 'skipped' | 'failed' | 'failures' | 'waitsFor'
>;
