import type { Agent, AgentDefinition, Scope } from '@baton/a2a';
import type { ApiToken, NewAgent, Tenant } from './records.js';

/** Tenants (Prisma). */
export declare class TenantStore {
  create(slug: string): Promise<Tenant>;
  list(): Promise<Tenant[]>;
  bySlug(slug: string): Promise<Tenant | undefined>;
  byId(id: string): Promise<Tenant | undefined>;
  setDefaultAgent(slug: string, agent: string): Promise<Tenant | undefined>;
}

/** Tokens (Prisma). `hash` is the hex SHA-256 of the secret. */
export declare class TokenStore {
  create(input: {
    tenantId: string;
    name: string;
    hash: string;
    prefix: string;
    scopes: Scope[];
    expiresAt: Date | null;
  }): Promise<ApiToken>;
  byHash(hash: string): Promise<ApiToken | undefined>;
  list(tenantId: string): Promise<ApiToken[]>;
  /** Finds by id or prefix within the tenant; undefined if there is none. */
  revoke(tenantId: string, idOrPrefix: string): Promise<ApiToken | undefined>;
}

/** Agents: a tenant's own rows, and those installed for every tenant. */
export declare class AgentStore {
  create(input: NewAgent): Promise<Agent>;
  list(tenantId: string): Promise<Agent[]>;
  /** By slug or id: the tenant's own first, then the installed ones. */
  find(tenantId: string, slugOrId: string): Promise<Agent | undefined>;
  remove(tenantId: string, slug: string): Promise<boolean>;
  /** Called by a worker at boot for each folder of BATON_AGENTS_DIR. */
  install(slug: string, definition: AgentDefinition, tenants: string[] | null): Promise<void>;
}
