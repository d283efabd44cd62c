import type { Scope } from '@baton/a2a';
import type { LimitOverrides } from '@baton/config';

export interface Tenant {
  id: string;
  slug: string;
  /** Slug of the agent that answers where no agent is named. */
  defaultAgent: string;
  /** The model of its index agent as `provider/model`, or `none`; null = the value of the environment. */
  indexModel: string | null;
  /** URL of that model; null = its provider's usual address. */
  indexModelUrl: string | null;
  /** The tenant's own values, which replace the defaults of the environment. */
  limits: LimitOverrides;
  /** Made by a release without a default retention: its ended tasks stay until the operator sets one. */
  predatesRetention: boolean;
  /** Patterns of the only destinations that its agents may call; empty = all. */
  egressAllow: string[];
  /** Patterns of the destinations that they may not call. */
  egressDeny: string[];
  /** When it was suspended. Its calls are refused, and its schedules do not fire. */
  suspendedAt: Date | null;
  /** The reason in the errors of its callers. */
  suspendedReason: string | null;
  /** When its deletion began. A tenant that is being deleted stays suspended. */
  deletingAt: Date | null;
  createdAt: Date;
  /** Its stored bytes, if they were read. Null: not counted yet. */
  storedBytes?: number | null;
  /** Whether there are caps of what it may spend, if that was read. */
  hasSpendingCaps?: boolean;
}

/** Which entries of a list a page has: those behind a key, in the order of the keys. */
export interface PageAfter {
  limit: number;
  after?: string | undefined;
}

/** What a token may do, which can be changed. */
export interface TokenRights {
  name: string;
  scopes: Scope[];
  /** Slugs of the agents that exist for it; empty = all. */
  agents: string[];
  /** Its own limit, besides that of its tenant; null = none. */
  requestsPerSecond: number | null;
  /** Null = it does not expire. */
  expiresAt: Date | null;
}

/** A tenant's bearer token. The secret itself is never stored. */
export interface ApiToken extends TokenRights {
  id: string;
  tenantId: string;
  /** First characters of the secret, kept so that a person can recognise it. */
  prefix: string;
  revokedAt: Date | null;
  /** Accurate to about a minute; null = never. */
  lastUsedAt: Date | null;
  /** Prefix of the secret before the last rotation; null = it was never rotated. */
  previousPrefix: string | null;
  /** Until when that secret is valid. */
  previousUntil: Date | null;
  createdAt: Date;
}

/** A token that was found by one of its secrets. */
export interface FoundToken extends ApiToken {
  /** Set if it is the secret before the last rotation: until when it is valid. */
  secretUntil?: Date;
}

/** An OpenID provider whose users may call a tenant. */
export interface TrustedIssuer {
  id: string;
  tenantId: string;
  /** URL, exactly as in the claim `iss`. */
  issuer: string;
  audience: string;
  /** Claim and value by which its tokens select this tenant, if the issuer and the audience serve several tenants. */
  selector: { claim: string; value: string } | null;
  /** URL of its keys; null = that of its discovery document. */
  jwksUrl: string | null;
  /** Claim with the id of the user. */
  subjectClaim: string;
  /** What each of its users may do. */
  scopes: Scope[];
  grants: ClaimGrant[];
  /** Slugs of the agents that exist for its users; none = all. */
  agents: string[];
  /** What each of its users may send; null = as much as the tenant. */
  requestsPerSecond: number | null;
  createdAt: Date;
}

/** What users may do whose token has the value in the claim. */
export interface ClaimGrant {
  claim: string;
  value: string;
  scopes: Scope[];
}
