import type { Agent, ListedAgent } from '@baton/a2a';

/** Lists the agents that a tenant can call. The worker binds it to the platform's catalog. */
export abstract class AgentList {
  /** Built-in agents, the tenant's own and installed ones. Never agents of another tenant. */
  abstract list(tenantId: string): Promise<ListedAgent[]>;
  /** One of these by slug or id, with its settings. It may be disabled. */
  abstract find(tenantId: string, slugOrId: string): Promise<Agent | undefined>;
}
