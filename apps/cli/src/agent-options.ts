import type { Agent } from '@baton/a2a';
import { assertConfig, BUILTIN_AGENTS } from '@baton/agents';
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

/**
 * The model of a tenant's index agent, as an operator names it: `provider/model`, `none`, or `default` for what the
 * environment says. Throws OperatorError that names the option.
 */
export function readIndexModel(model: string, url?: string): Pick<Tenant, 'indexModel' | 'indexModelUrl'> {
  if (model === 'default') return { indexModel: null, indexModelUrl: null };
  if (model === 'none') return { indexModel: 'none', indexModelUrl: null };
  try {
    assertConfig({ runtime: 'llm', config: { model, ...(url !== undefined && { baseUrl: url }) } });
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    const named = reason
      .replace('config.model:', '--index-model')
      .replace('config.baseUrl:', '--index-model-url');
    throw new OperatorError(`${named}.`);
  }
  return { indexModel: model, indexModelUrl: url ?? null };
}
