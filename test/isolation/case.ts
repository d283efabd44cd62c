import type { Scope } from '../../libs/a2a/src/rights.js';
import type { WireRequest } from '../support/wire.js';
import type { Owned, World } from './world.js';

/** What a caller may name. */
export type Kind =
  | keyof Owned
  | 'newSecret'
  | 'newSchedule'
  | 'reference'
  | 'messageId'
  | 'idempotencyKey'
  | 'alias'
  | 'cursor';

/** One request in which one thing is named. */
export interface Case {
  title: string;
  /** What the call does, and in which version. The same at each path that does it. */
  operation: string;
  kind: Kind;
  /** What a token needs for it. */
  scope: Scope;
  /** It makes something of the caller's: a task, a secret, a schedule. */
  sends: boolean;
  /** A caller that may not read the thing gets an error. Otherwise it gets the answer for any name. */
  refused: boolean;
  /** The path is open to callers without a token. */
  open: boolean;
  request(id: string): WireRequest;
  /** The owner's id, where one must be made for the case first. */
  prepare?: (world: World) => Promise<string>;
}

/** A path and a method. */
export const callOf = ({ title }: Case): string => title.split(' by ')[0]!;

/** The tasks of the owner. */
export const TASKS = ['waitingTask', 'endedTask', 'workingTask'] as const;
/** The agents that the owner alone may call. */
export const AGENTS = ['agentSlug', 'agentId', 'installedSlug', 'installedId'] as const;
/** The names of the owner's tenant. */
export const TENANTS = ['tenantSlug', 'tenantId'] as const;
/** The schedules of the owner. */
export const SCHEDULES = ['scheduleId', 'scheduleName'] as const;
