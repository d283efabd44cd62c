import {
  type Agent,
  type AgentDefinition,
  isUuid,
  type ListedAgent,
  listedAgent,
  outputSchemaOf,
} from '@baton/a2a';
import { Injectable } from '@nestjs/common';
import { randomUUID } from 'node:crypto';
import { CatalogClient } from '../connection/catalog-client.js';
import type { Statement } from '../connection/database.js';
import type { CatalogAgent, InstalledAgent } from '../generated/client.js';
import type { PageAfter } from '../tenants/tenant-records.js';
import { labelColumns, labelsOf, type LabelsRow, nextDefinition } from './agent-labels.js';
import type { AgentSummary, OwnAgent } from './catalog-records.js';

type Summary = Pick<AgentDefinition, 'name' | 'description' | 'runtime' | 'a2aEnabled'> &
  // Some were written without, and some are whole definitions.
  Partial<Pick<AgentDefinition, 'skills' | 'config'>> &
  Pick<ListedAgent['definition'], 'outputSchema'>;

interface SummaryRow extends LabelsRow {
  id: string;
  slug: string;
  version: number;
  enabled: boolean;
  summary: Summary;
}

type OwnRow = Pick<CatalogAgent, 'id' | 'slug' | 'definition' | 'version' | 'enabled' | 'deletedAt'> &
  LabelsRow;
type OpenRow = Pick<InstalledAgent, 'slug' | 'everyTenant' | 'tenants'>;
type InstalledRow = OpenRow & Pick<InstalledAgent, 'id' | 'definition'>;

/** It reads the definition only of rows that a process of the last release wrote. $1 tenant */
const OWN_SUMMARIES = `SELECT id::text, slug, version, enabled,
    CASE WHEN summary_version = version THEN summary ELSE definition END AS summary, ${labelColumns('agents')}
  FROM agents WHERE tenant_id = $1::uuid AND deleted_at IS NULL`;
const OWN: Statement = { text: OWN_SUMMARIES };
/** $2 slug before the page, $3 slugs or null, $4 how many */
const OWN_PAGE: Statement = {
  text: `${OWN_SUMMARIES} AND slug COLLATE "C" > $2 AND ($3::text[] IS NULL OR slug = ANY($3::text[]))
    ORDER BY slug COLLATE "C" LIMIT $4::int`,
};
const OWN_SLUGS: Statement = {
  text: 'SELECT slug, enabled FROM agents WHERE tenant_id = $1::uuid AND deleted_at IS NULL',
};
/** If all are deleted, the last one. $1 tenant, $2 slug, $3 id or null */
const FIND_OWN: Statement = {
  name: 'agent-find-own-2',
  text: `SELECT id::text, slug, definition, version, enabled, deleted_at AS "deletedAt", ${labelColumns('agents')},
    ${nextDefinition('agents')} FROM agents
    WHERE tenant_id = $1::uuid AND (slug = $2 OR id = $3::uuid) ORDER BY deleted_at DESC NULLS FIRST LIMIT 1`,
};

const OPEN_COLUMNS = `slug, every_tenant AS "everyTenant", coalesce(tenants, '{}') AS tenants`;
const OPEN: Statement = { text: `SELECT ${OPEN_COLUMNS} FROM installed_agents` };
const INSTALLED_AGENTS = `SELECT id::text, definition, ${OPEN_COLUMNS} FROM installed_agents`;
const INSTALLED: Statement = { text: INSTALLED_AGENTS };
/** $1 slug, $2 id or null */
const FIND_INSTALLED: Statement = {
  name: 'agent-find-installed',
  text: `${INSTALLED_AGENTS} WHERE slug = $1 OR id = $2::uuid`,
};
/** $1 slugs */
const INSTALLED_NAMED: Statement = { text: `${INSTALLED_AGENTS} WHERE slug = ANY($1::text[])` };
/** $1 id if it is new, $2 slug, $3 definition, $4 for every tenant, $5 tenants */
const INSTALL: Statement = {
  text: `INSERT INTO installed_agents (id, slug, definition, every_tenant, tenants, updated_at)
    VALUES ($1::uuid, $2, $3::json, $4, $5::text[], now())
    ON CONFLICT (slug) DO UPDATE SET definition = excluded.definition, every_tenant = excluded.every_tenant,
      tenants = excluded.tenants, updated_at = excluded.updated_at`,
};
/** $1 tenant $2 agent $3 version. Nothing if it was erased, or there are too many later ones. */
const FIND_VERSION: Statement = {
  name: 'agent-find-version',
  text: `SELECT definition FROM agent_versions
    WHERE tenant_id = $1::uuid AND agent_id = $2::uuid AND version = $3 AND erased_at IS NULL`,
};
/** $1 slug $2 code $3 archive */
const KEEP_ARCHIVE: Statement = {
  text: `INSERT INTO agent_archives (slug, code, archive) VALUES ($1, $2, $3)
    ON CONFLICT (slug, code) DO UPDATE SET used_at = now()`,
};
/** $1 slug $2 code */
const FIND_ARCHIVE: Statement = {
  text: 'UPDATE agent_archives SET used_at = now() WHERE slug = $1 AND code = $2 RETURNING archive',
};
/** $1 tenant */
const TENANT_SLUG: Statement = {
  name: 'agent-tenant-slug',
  text: 'SELECT slug FROM tenants WHERE id = $1::uuid',
};

/** Finds agents: a tenant's own rows, and those installed for every tenant. AgentCatalogStore writes the former. */
@Injectable()
export class AgentStore {
  constructor(private readonly catalog: CatalogClient) {}

  /**
   * The tenant's own agents and the installed ones it may use, by slug, without their settings; its own hide installed ones with
   * the same slug.
   */
  async list(tenantId: string): Promise<ListedAgent[]> {
    const [own, installed, names] = await Promise.all([
      this.catalog.queryInTenant<SummaryRow>(tenantId, OWN, [tenantId]),
      this.catalog.query<InstalledRow>(INSTALLED, []),
      this.namesOf(tenantId),
    ]);
    const open = installed.filter((agent) => isOpenTo(names, agent));
    const bySlug = new Map<string, ListedAgent>(
      open.map((row) => [row.slug, listed(listedAgent(installedOf(row)))]),
    );
    for (const { id, slug, version, enabled, summary } of own) {
      const { skills = [], config = {}, outputSchema = outputSchemaOf({ ...summary, config }) } = summary;
      const definition = { ...summary, skills, ...(outputSchema && { outputSchema }) };
      const status = enabled ? {} : ({ status: 'disabled' } as const);
      bySlug.set(slug, listed({ id, slug, origin: 'catalog', version, definition, ...status }));
    }
    return [...bySlug.values()].sort((a, b) => (a.slug < b.slug ? -1 : 1));
  }

  /**
   * A page of the same agents, by slug as JavaScript sorts. Reads no definition of the tenant's own agents, except agents that a
   * process of the last release has written.
   * @param slugs only these; unset = all
   */
  async page(
    tenantId: string,
    { limit, after = '' }: PageAfter,
    slugs?: readonly string[],
  ): Promise<AgentSummary[]> {
    const [own, installed, names] = await Promise.all([
      this.catalog.queryInTenant<SummaryRow>(tenantId, OWN_PAGE, [tenantId, after, slugs ?? null, limit]),
      this.catalog.query<OpenRow>(OPEN, []),
      this.namesOf(tenantId),
    ]);
    const open = installed.filter(
      (agent) =>
        isOpenTo(names, agent) && agent.slug > after && (slugs === undefined || slugs.includes(agent.slug)),
    );
    const bySlug = new Map<string, SummaryRow | undefined>(open.map(({ slug }) => [slug, undefined]));
    for (const row of own) bySlug.set(row.slug, row);
    const page = [...bySlug].sort(([a], [b]) => (a < b ? -1 : 1)).slice(0, limit);
    const theirs = await this.installedSummaries(page.flatMap(([slug, row]) => (row ? [] : [slug])));
    return page.flatMap(([slug, row]) => (row ? ownSummary(row) : (theirs.get(slug) ?? [])));
  }

  /** The tenant's own agents, without their definitions. */
  async own(tenantId: string): Promise<OwnAgent[]> {
    const rows = await this.catalog.queryInTenant<SummaryRow>(tenantId, OWN, [tenantId]);
    return rows.map(({ slug, enabled, summary: { a2aEnabled } }) => ({
      slug,
      definition: a2aEnabled === false ? { a2aEnabled } : {},
      ...(!enabled && { status: 'disabled' }),
    }));
  }

  /** The slugs of the agents that take messages of the tenant. Reads no definitions, which may be large. */
  async slugs(tenantId: string): Promise<string[]> {
    const [own, installed, names] = await Promise.all([
      this.catalog.queryInTenant<Pick<OwnRow, 'slug' | 'enabled'>>(tenantId, OWN_SLUGS, [tenantId]),
      this.catalog.query<OpenRow>(OPEN, []),
      this.namesOf(tenantId),
    ]);
    const open = installed.filter((agent) => isOpenTo(names, agent));
    const takes = new Map(open.map(({ slug }) => [slug, true]));
    for (const { slug, enabled } of own) takes.set(slug, enabled);
    return [...takes].flatMap(([slug, isEnabled]) => (isEnabled ? [slug] : []));
  }

  /** By slug or id: the tenant's own first, then the installed ones. */
  async find(tenantId: string, slugOrId: string): Promise<Agent | undefined> {
    const found = await this.findIncludingDeleted(tenantId, slugOrId);
    return found?.status === 'deleted' ? undefined : found;
  }

  /**
   * Like `find`. If there is no such agent, returns the one that the tenant has deleted last; its tasks still name it.
   */
  async findIncludingDeleted(tenantId: string, slugOrId: string): Promise<Agent | undefined> {
    // Postgres has no text with U+0000, so no agent has such a name.
    if (slugOrId.includes('\0')) return undefined;
    const id = isUuid(slugOrId) ? slugOrId : null;
    // The queries are always the same, so the duration does not reveal agents of other tenants.
    const [[own], installed, names] = await Promise.all([
      this.catalog.queryInTenant<OwnRow>(tenantId, FIND_OWN, [tenantId, slugOrId, id]),
      this.catalog.query<InstalledRow>(FIND_INSTALLED, [slugOrId, id]),
      this.namesOf(tenantId),
    ]);
    const open = installed.find((agent) => isOpenTo(names, agent));
    if (own && (!own.deletedAt || !open)) return ownOf(own);
    return open && installedOf(open);
  }

  /**
   * Called by a worker at boot for each folder of BATON_AGENTS_DIR. Safe for several workers at once.
   * @param tenants slugs or ids of the tenants that may use it; null = every tenant
   */
  async install(slug: string, definition: AgentDefinition, tenants: string[] | null): Promise<void> {
    const values = [randomUUID(), slug, JSON.stringify(definition), tenants === null, tenants ?? []];
    await this.catalog.query(INSTALL, values);
  }

  /** An earlier version of an agent of the tenant's catalog. Undefined: it was erased, or is too old. */
  async version(tenantId: string, agentId: string, version: number): Promise<AgentDefinition | undefined> {
    type Row = { definition: AgentDefinition };
    const [row] = await this.catalog.queryInTenant<Row>(tenantId, FIND_VERSION, [tenantId, agentId, version]);
    return row?.definition;
  }

  /** Keep the code of an installed agent for tasks that are pinned to it. */
  async keepArchive(slug: string, code: string, archive: Buffer): Promise<void> {
    await this.catalog.query(KEEP_ARCHIVE, [slug, code, archive]);
  }

  /** The kept code of an installed agent. Undefined: it was not kept. */
  async archive(slug: string, code: string): Promise<Buffer | undefined> {
    const [row] = await this.catalog.query<{ archive: Buffer }>(FIND_ARCHIVE, [slug, code]);
    return row?.archive;
  }

  /** Summaries of the installed agents with these slugs, by slug. */
  private async installedSummaries(slugs: string[]): Promise<Map<string, AgentSummary>> {
    if (slugs.length === 0) return new Map();
    const rows = await this.catalog.query<InstalledRow>(INSTALLED_NAMED, [slugs]);
    return new Map(rows.map((row) => [row.slug, agentSummary(installedOf(row))]));
  }

  /** The names by which an installed agent may list the tenant. */
  private async namesOf(tenantId: string): Promise<string[]> {
    const [tenant] = await this.catalog.queryInTenant<{ slug: string }>(tenantId, TENANT_SLUG, [tenantId]);
    return tenant ? [tenantId, tenant.slug] : [tenantId];
  }
}

const isOpenTo = (names: readonly string[], { everyTenant, tenants }: OpenRow): boolean =>
  everyTenant || tenants.some((name) => names.includes(name));

/** Without the fields that do not help to choose an agent. */
const listed = ({
  definition: { name, description, skills, a2aEnabled, outputSchema },
  ...agent
}: ListedAgent): ListedAgent => ({
  ...agent,
  definition: {
    name,
    description,
    skills,
    ...(a2aEnabled !== undefined && { a2aEnabled }),
    ...(outputSchema && { outputSchema }),
  },
});

/** An agent as lists show it. */
export function agentSummary({ definition, ...agent }: Agent): AgentSummary {
  const { name, description, runtime } = definition;
  return { ...agent, name, description, runtime };
}

function ownSummary({ id, slug, version, enabled, summary, ...labels }: SummaryRow): AgentSummary {
  const { name, description, runtime } = summary;
  return {
    id,
    slug,
    origin: 'catalog',
    version,
    name,
    description,
    runtime,
    ...labelsOf(version, labels),
    ...(!enabled && { status: 'disabled' }),
  };
}

const installedOf = ({ id, slug, definition }: InstalledRow): Agent => ({
  id,
  slug,
  origin: 'installed',
  definition: definition as unknown as AgentDefinition,
});

function ownOf({ id, slug, definition, version, enabled, deletedAt, ...labels }: OwnRow): Agent {
  const status = deletedAt ? ('deleted' as const) : enabled ? undefined : ('disabled' as const);
  return {
    id,
    slug,
    origin: 'catalog',
    version,
    definition: definition as unknown as AgentDefinition,
    ...labelsOf(version, labels),
    ...(status && { status }),
  };
}
