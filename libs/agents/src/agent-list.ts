import type { Agent } from '@baton/a2a';

/** The agents a tenant can call. Bound to the platform's catalog by the process that runs agents. */
export abstract class AgentList {
  /** Built-ins, the tenant's own and the installed ones; never another tenant's. */
  abstract list(tenantId: string): Promise<Agent[]>;
}
