import type { AuditTarget } from '../audit/audit-records.js';
import type { SealedSecret } from '../catalog/catalog-records.js';

/** Names a connection by the data of a run. */
export interface OAuthConnectionKey {
  tenantId: string;
  /** URL of the server in the settings of agents. */
  resource: string;
  /** Key of the principal; null = the whole tenant is signed in. */
  caller: string | null;
}

/** The sign-in of a tenant, or of one of its callers, at a server that agents call. */
export interface OAuthConnection extends OAuthConnectionKey {
  id: string;
  issuer: string;
  /** What the authorization server has granted; null = unknown. */
  scope: string | null;
  /** Why it is over; null = it is not. */
  ended: string | null;
  /** When it should be refreshed; null = the access token does not say when it expires. */
  refreshAt: Date | null;
  /** Counts the tokens from 1. */
  generation: number;
  createdBy: string;
  createdAt: Date;
  updatedAt: Date;
}

/** With its tokens. */
export interface SealedConnection extends OAuthConnection {
  sealed: SealedSecret;
}

/** Tokens to store. */
export interface NewTokens {
  sealed: SealedSecret;
  scope: string | null;
  refreshAt: Date | null;
}

/** A call that an agent makes with a sign-in. */
export interface ConnectionCall {
  /** Id of its record in the audit log: a uuid. */
  id: string;
  target: AuditTarget;
  /** Slug of the agent. */
  agent: string;
  /** About the call: the task, and the caller of the task. */
  detail: Readonly<Record<string, unknown>>;
}

/** Names the tokens that a process has read. */
export interface TokensKey {
  tenantId: string;
  id: string;
  generation: number;
}

/** A sign-in that was begun. */
export interface OAuthSignIn extends OAuthConnectionKey {
  id: string;
  /** Slug of the agent whose settings name the server. */
  agent: string;
  /** Settings of the sign-in, without secrets. */
  settings: unknown;
  /** The task that waits for it. */
  taskId: string | null;
  /** How the code is exchanged, without secrets; null = no browser has opened the link. */
  terms: unknown;
  createdBy: string;
  expiresAt: Date;
}

/** A sign-in that has brought tokens. */
export type DoneSignIn = Pick<OAuthSignIn, keyof OAuthConnectionKey | 'id' | 'createdBy'>;

/** A sign-in before it is stored. */
export type NewSignIn = Pick<
  OAuthSignIn,
  keyof OAuthConnectionKey | 'id' | 'agent' | 'settings' | 'taskId' | 'createdBy'
> & {
  /** SHA-256 of what its link has. */
  ticket: Buffer;
  ttlMs: number;
};

/** What a browser brings from the authorization server, as SHA-256. */
export interface SignInProof {
  state: Buffer;
  browser: Buffer;
}
