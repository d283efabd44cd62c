import type { Agent, AgentDefinition, MaybeEnabled } from '@baton/a2a';

/** The encrypted value of a secret. */
export interface SealedSecret {
  /** Which master key it is encrypted with. */
  keyId: string;
  nonce: Uint8Array;
  /** With the authentication tag at its end. */
  ciphertext: Uint8Array;
}

/** The encrypted value of a secret, and the destinations that may receive it (`@baton/a2a`, secret-origins). */
export interface BoundSecret extends SealedSecret {
  /** null: an earlier release stored it, and it may go anywhere. */
  origins: string[] | null;
}

/** A secret of a tenant, as far as it may be shown. */
export interface SecretInfo {
  name: string;
  keyId: string;
  /** The destinations that may receive it. null: an earlier release stored it, and it may go anywhere. */
  origins: string[] | null;
  createdAt: Date;
  updatedAt: Date;
}

/** Where a secret is used. */
export interface SecretKey {
  tenantId: string;
  name: string;
}

// Names of secrets that Baton stores, and no tenant has named. Names that tenants give have no spaces. A rotation of the master key
// finds the row by this name.

/** The secrets of a push config. */
export const pushSecretName = (taskId: string, configId: string): string => `push ${taskId} ${configId}`;
/** The secrets of a webhook. */
export const webhookSecretName = (id: string): string => `webhook ${id}`;
/** The tokens of a sign-in at a server. */
export const connectionSecretName = (id: string): string => `connection ${id}`;
/** The secret of the client that Baton is at an authorization server. */
export const oauthClientSecretName = (issuer: string): string => `oauth-client ${issuer}`;

/** An agent of a tenant's catalog in its present version. */
export interface CatalogEntry extends Agent {
  version: number;
  createdAt: Date;
  updatedAt: Date;
}

/** An agent in a list. */
export interface AgentSummary
  extends Omit<Agent, 'definition'>, Pick<AgentDefinition, 'name' | 'description' | 'runtime'> {}

/** An agent of the tenant's own catalog: the members that decide whether it takes messages. */
export interface OwnAgent extends MaybeEnabled, Pick<Agent, 'slug'> {}

/** The facts about a version of an agent. */
export interface AgentContent {
  definition: AgentDefinition;
  enabled: boolean;
  /** Who writes it: `token:<id>` or `operator`. */
  by: string;
}

/** A new agent. */
export interface NewAgent extends AgentContent {
  tenantId: string;
  slug: string;
}

/** The version of an agent that a writer has read. */
export interface AgentKey {
  tenantId: string;
  id: string;
  version: number;
}

/** How a version gets the label `next`. */
export interface NewNext {
  tenantId: string;
  id: string;
  share: number;
  failures: number;
  /** A version that is stored; or the definition of a new one, and who writes it. */
  version: number | { definition: AgentDefinition; by: string };
  /** Only if this version has the label; null: only if none has it. Unset: a version without a share takes it from none with one. */
  replaces?: number | null | undefined;
}

/** One version of an agent. */
export interface AgentVersion extends AgentContent {
  version: number;
  createdAt: Date;
  /** When its definition was erased. The definition is then an empty object. */
  erasedAt: Date | null;
}

/** A host name and the agent for calls that name no agent. */
export interface HostBinding {
  /** In lower case, without a port. */
  host: string;
  tenantId: string;
  /** Slug of the agent. */
  agent: string;
  /** Whether callers without a token may call it. */
  public: boolean;
}
