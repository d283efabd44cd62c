import type { Agent, AgentDefinition } from '@baton/a2a';

/** The encrypted value of a secret. */
export interface SealedSecret {
  /** Which master key it is encrypted with. */
  keyId: string;
  nonce: Uint8Array;
  /** With the authentication tag at its end. */
  ciphertext: Uint8Array;
}

/** A secret of a tenant, as far as it may be shown. */
export interface SecretInfo {
  name: string;
  keyId: string;
  createdAt: Date;
  updatedAt: Date;
}

/** Where a secret stands. */
export interface SecretKey {
  tenantId: string;
  name: string;
}

/** An agent of a tenant's catalog, as it stands. */
export interface CatalogEntry extends Agent {
  version: number;
  createdAt: Date;
  updatedAt: Date;
}

/** What a version of an agent says of it. */
export interface AgentContent {
  definition: AgentDefinition;
  enabled: boolean;
  /** Who writes it: `token:<id>` or `operator`. */
  by: string;
}

/** An agent that its tenant does not have yet. */
export interface NewAgent extends AgentContent {
  tenantId: string;
  slug: string;
}

/** Which version of which agent somebody has seen. */
export interface AgentKey {
  tenantId: string;
  id: string;
  version: number;
}

/** What an agent was at one of its versions. */
export interface AgentVersion extends AgentContent {
  version: number;
  createdAt: Date;
}

/** A host name whose calls that name no agent go to this one. */
export interface HostBinding {
  /** In lower case, without a port. */
  host: string;
  tenantId: string;
  /** Slug of the agent. */
  agent: string;
  /** Whether callers without a token may call it. */
  public: boolean;
}
