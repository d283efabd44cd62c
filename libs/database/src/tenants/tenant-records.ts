import type { Scope } from '@baton/a2a';
import type { LimitOverrides } from '@baton/config';

export interface Tenant {
  id: string;
  slug: string;
  /** Slug of the agent that answers where no agent is named. */
  defaultAgent: string;
  /** The model of its index agent as `provider/model`, or `none`; null = what the environment says. */
  indexModel: string | null;
  /** URL of that model; null = its provider's usual address. */
  indexModelUrl: string | null;
  /** The tenant's own values, which replace the defaults of the environment. */
  limits: LimitOverrides;
  createdAt: Date;
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
