import type { Agent } from '@baton/a2a';
import { BUILTIN_AGENTS } from '@baton/agents';
import type { AgentStore, Tenant } from '@baton/database';
import { OperatorError } from './cli.js';

/** The agent a tenant knows by that slug or id, built-ins included. Throws OperatorError if it has none. */
export async function requireAgent(
  agents: AgentStore,
  tenant: Pick<Tenant, 'id' | 'slug'>,
  name: string,
): Promise<Agent> {
  const builtin = BUILTIN_AGENTS.find(({ slug }) => slug === name);
  const agent = builtin ?? (await agents.find(tenant.id, name));
  if (agent) return agent;
  throw new OperatorError(
    `Tenant "${tenant.slug}" has no agent "${name}": npx baton agents list --tenant ${tenant.slug} shows its agents.`,
  );
}
