import { type Agent, ProtocolError, writeAgentDefinition } from '@baton/a2a';
import { callerOf } from '@baton/identity';
import type { AgentVersion, Author, CatalogEntry, CatalogWrite, WriteOptions } from '@baton/tasks';
import type { FastifyRequest } from 'fastify';
import { actorOf } from '../../access/actor.js';
import { readFlag } from '../query.js';

type Shown = Omit<Agent, 'id'> & Partial<Pick<CatalogEntry, 'id' | 'createdAt' | 'updatedAt'>>;

/** An agent in a list. */
export const encodeAgentSummary = (agent: Agent): Record<string, unknown> => {
  const { name, description, runtime } = agent.definition;
  return { ...standingOf(agent), name, description, runtime };
};

/** An agent with its definition. Tenants do not see the settings of an operator's agent. */
export function encodeAgent(agent: Shown): Record<string, unknown> {
  const { config: _, ...shown } = writeAgentDefinition(agent.definition);
  return {
    ...standingOf(agent),
    created_at: agent.createdAt?.toISOString(),
    updated_at: agent.updatedAt?.toISOString(),
    definition: agent.origin === 'catalog' ? writeAgentDefinition(agent.definition) : shown,
  };
}

/** The outcome of a write or of a dry run. */
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
  erased_at: version.erasedAt?.toISOString() ?? null,
});

/** A version with its definition, which is null if it was erased. */
export const encodeVersion = (version: AgentVersion): Record<string, unknown> => ({
  ...encodeVersionSummary(version),
  definition: version.erasedAt ? null : writeAgentDefinition(version.definition),
});

const standingOf = ({ id, slug, origin, version, status }: Shown): Record<string, unknown> => ({
  ...{ id, slug, origin },
  enabled: status === undefined,
  version: version ?? null,
});

/** The author of a change, as versions name it. */
export function authorOf(request: FastifyRequest): Author {
  const { tenantId, agents, principal } = callerOf(request);
  return { tenantId, agents, by: principal.key, actor: actorOf(request) };
}

/** The ETag of one version of one agent. */
export const etagOf = ({ id, version }: Pick<CatalogEntry, 'id' | 'version'>): string => `"${id}.${version}"`;

/**
 * The options of a write: `?dryRun=true`, and `If-Match` or `If-None-Match` (RFC 9110 §13.1), which keep two people
 * from overwriting each other's work.
 */
export function writeOptions(
  { headers }: FastifyRequest,
  dryRun: string | undefined,
): Required<WriteOptions> {
  const match = headers['if-match'];
  const noneMatch = headers['if-none-match'];
  return {
    dryRun: readFlag('dryRun', dryRun),
    check: (current) => {
      if (match !== undefined) assertMatch(match, current);
      if (noneMatch !== undefined && current && isNamedIn(noneMatch, current)) {
        throw new ProtocolError('precondition-failed', `there is an agent "${current.slug}" already`);
      }
    },
  };
}

function assertMatch(match: string, current: CatalogEntry | undefined): void {
  if (current && isNamedIn(match, current)) return;
  const what = current ? `"${current.slug}" is now at version ${current.version}` : 'there is no such agent';
  throw new ProtocolError('precondition-failed', `If-Match: ${what}: read it again and change that`);
}

const isNamedIn = (tags: string, current: CatalogEntry): boolean =>
  tags.trim() === '*' || tags.split(',').some((tag) => tag.trim() === etagOf(current));
