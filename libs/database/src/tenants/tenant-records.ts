import type { Scope } from '@baton/a2a';

export interface Tenant {
  id: string;
  slug: string;
  /** Slug of the agent that answers where no agent is named. */
  defaultAgent: string;
  /** The model of its index agent as `provider/model`, or `none`; null = what the environment says. */
  indexModel: string | null;
  /** Where that model is; null = at its provider's usual address. */
  indexModelUrl: string | null;
  /** What the operator has set apart from the defaults of the environment. */
  limits: LimitOverrides;
  createdAt: Date;
}

/** What the operator may set for a tenant; a key that is absent leaves the default, null is "no limit". */
export interface LimitOverrides {
  /** Requests per second. */
  requestsPerSecond?: number | null;
  /** Runs at once; further ones wait. */
  runsAtOnce?: number | null;
  /** Tasks that wait for a run. */
  tasksWaiting?: number | null;
  /** Streams open at once. */
  openStreams?: number | null;
  /** Bytes of a request body. */
  bodyBytes?: number | null;
  /** Bytes that the tenant's tasks take in the database. */
  storedBytes?: number | null;
  /** Bytes of one event of an agent. */
  eventBytes?: number | null;
  /** Events of one run. */
  eventsPerRun?: number | null;
  /** Bytes of all events of one run. */
  bytesPerRun?: number | null;
  /** Events of one task. */
  eventsPerTask?: number | null;
  /** Bytes of all messages and events of one task. */
  bytesPerTask?: number | null;
  /** Tokens of models in a day (UTC). */
  tokensPerDay?: number | null;
  /** Days that an ended task stays; null = for ever. */
  retentionDays?: number | null;
  /** Share of the workers where tenants compete, 1 to 1000. */
  weight?: number;
}

/** A tenant's bearer token. The secret itself is never stored. */
export interface ApiToken {
  id: string;
  tenantId: string;
  name: string;
  /** First characters of the secret, kept so that a person can recognise it. */
  prefix: string;
  scopes: Scope[];
  expiresAt: Date | null;
  revokedAt: Date | null;
  createdAt: Date;
}
