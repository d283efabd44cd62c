import { type Agent, writeAgentDefinition } from '@baton/a2a';
import type { AgentVersion, CatalogEntry, CatalogWrite } from '@baton/tasks';

type Shown = Omit<Agent, 'id'> & Partial<Pick<CatalogEntry, 'id' | 'createdAt' | 'updatedAt'>>;

/** An agent in a list. */
export const encodeAgentSummary = (agent: Agent): Record<string, unknown> => {
  const { name, description, runtime } = agent.definition;
  return { ...standingOf(agent), name, description, runtime };
};

/** An agent with its definition. What an operator has set for it is not for tenants to see. */
export function encodeAgent(agent: Shown): Record<string, unknown> {
  const { config: _, ...shown } = writeAgentDefinition(agent.definition);
  return {
    ...standingOf(agent),
    created_at: agent.createdAt?.toISOString(),
    updated_at: agent.updatedAt?.toISOString(),
    definition: agent.origin === 'catalog' ? writeAgentDefinition(agent.definition) : shown,
  };
}

/** What a write did to an agent, or would do. */
export const encodeWrite = ({ outcome, entry }: CatalogWrite, dryRun: boolean): Record<string, unknown> => ({
  outcome,
  dry_run: dryRun,
  agent: encodeAgent(entry),
});

/** A version in a list. */
export const encodeVersionSummary = (version: AgentVersion): Record<string, unknown> => ({
  version: version.version,
  enabled: version.enabled,
  created_at: version.createdAt.toISOString(),
  created_by: version.by,
});

/** A version with its definition. */
export const encodeVersion = (version: AgentVersion): Record<string, unknown> => ({
  ...encodeVersionSummary(version),
  definition: writeAgentDefinition(version.definition),
});

const standingOf = ({ id, slug, origin, version, closed }: Shown): Record<string, unknown> => ({
  ...{ id, slug, origin },
  enabled: closed === undefined,
  version: version ?? null,
});
