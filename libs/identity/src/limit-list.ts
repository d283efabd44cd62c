import type { TenantLimits } from './limits.service.js';

export type LimitName = keyof TenantLimits;

/** What an operator may set a limit to. */
export interface LimitRule {
  /** What is counted, for people. */
  what: string;
  min: number;
  max: number;
  /** Fractions are allowed. */
  fractions?: true;
  /** There is no going without: "none" can't be set. */
  required?: true;
}

/** More than any installation has, and still exact in every place it goes through. */
const MANY = 999_999_999_999_999;

/** Every limit that an operator may set for a tenant; docs/reference/limits.md explains each. */
export const LIMITS: Readonly<Record<LimitName, LimitRule>> = {
  requestsPerSecond: { what: 'requests per second', min: 1, max: 1_000_000 },
  runsAtOnce: { what: 'runs at once; further ones wait', min: 1, max: MANY },
  tasksWaiting: { what: 'tasks that wait for a run', min: 1, max: MANY },
  openStreams: { what: 'streams open at once', min: 1, max: MANY },
  bodyBytes: { what: 'bytes of a request body', min: 1, max: MANY },
  storedBytes: { what: 'bytes that its tasks take in the database', min: 1, max: MANY },
  eventBytes: { what: 'bytes of one event of an agent', min: 1, max: MANY },
  eventsPerRun: { what: 'events of one run', min: 1, max: MANY },
  bytesPerRun: { what: 'bytes of all events of one run', min: 1, max: MANY },
  eventsPerTask: { what: 'events of one task', min: 1, max: MANY },
  bytesPerTask: { what: 'bytes of all messages and events of one task', min: 1, max: MANY },
  tokensPerDay: { what: 'tokens of models in a day (UTC)', min: 1, max: MANY },
  retentionDays: { what: 'days that an ended task stays', min: 0.000001, max: 99_999, fractions: true },
  weight: { what: 'share of the workers where tenants compete', min: 1, max: 1000, required: true },
};

export const LIMIT_NAMES = Object.keys(LIMITS) as readonly LimitName[];
