import type { Actor } from '../audit/audit-records.js';

/** Whose spending a cap bounds. */
export const CAP_KINDS = ['tenant', 'agent', 'caller', 'token', 'schedule', 'task'] as const;
export type CapKind = (typeof CAP_KINDS)[number];

/** For how long a cap counts: a day, a week from Monday or a month (UTC), or the life of a task tree. */
export const CAP_PERIODS = ['day', 'week', 'month', 'life'] as const;
export type CapPeriod = (typeof CAP_PERIODS)[number];

/** The subject of a cap of each agent, caller, token, schedule or task tree: each has the amount for itself. */
export const EACH = '*';

/** What happens to a task whose next call does not fit. */
export const ON_LIMIT = ['fail', 'ask'] as const;
export type OnLimit = (typeof ON_LIMIT)[number];

/** Who has set a cap. A tenant cannot change one of the operator. */
export type CapSetter = 'tenant' | 'operator';

/** A cap of what may be spent. Amounts are millionths of the currency (`micros`). */
export interface SpendingCap {
  id: string;
  kind: CapKind;
  /** Id of the agent or schedule, key of the caller, id of the token or of the root task; `EACH`; empty for the tenant. */
  subject: string;
  /** What people call the subject, as the slug of an agent. */
  name: string;
  period: CapPeriod;
  micros: number;
  onLimit: OnLimit;
  setBy: CapSetter;
}

/** A cap, and what was spent in its present period. */
export interface SpendingCapUse extends SpendingCap {
  /** First day of the period; null: it is a life. */
  periodStart: string | null;
  /** For a cap of each subject: the amount of the one that has spent most. */
  usedMicros: number;
  /** What persons have let tasks spend beyond the cap, of all subjects. It is not in `usedMicros`. */
  allowedMicros: number;
  /** That subject. Null: nothing was spent. */
  usedBy: string | null;
  changedBy: string;
  updatedAt: Date;
}

/** A cap before it is stored. */
export interface NewSpendingCap extends Omit<SpendingCap, 'id'> {
  tenantId: string;
  by: Actor;
}

/** A cap that has no room for a call. */
export interface FullCap extends SpendingCap {
  periodStart: string | null;
  /** First day after the period; null: it is a life. */
  periodEnd: string | null;
  /** Whose call it is: an id or a key. */
  of: string;
  usedMicros: number;
  /** What calls that are being made may cost. */
  reservedMicros: number;
  /** What a person has let the task tree of the call spend beyond the cap. */
  allowedMicros: number;
}
