import { type Agent, type AgentDefinition, isUuid } from '@baton/a2a';
import { Injectable } from '@nestjs/common';
import { CatalogClient } from '../connection/catalog-client.js';
import type { CatalogAgent, InstalledAgent, Prisma } from '../generated/client.js';

/** Finds agents: a tenant's own rows, and those installed for every tenant. AgentCatalogStore writes the former. */
@Injectable()
export class AgentStore {
  constructor(private readonly catalog: CatalogClient) {}

  /** The tenant's own agents and the installed ones it may use, by slug; its own hide those of the same slug. */
  async list(tenantId: string): Promise<Agent[]> {
    const [own, installed, names] = await Promise.all([
      this.catalog.inTenant(tenantId, (prisma) =>
        prisma.catalogAgent.findMany({ where: { tenantId, deletedAt: null } }),
      ),
      this.catalog.run((prisma) => prisma.installedAgent.findMany()),
      this.namesOf(tenantId),
    ]);
    const open = installed.filter((agent) => isOpenTo(names, agent));
    const bySlug = new Map(open.map((row) => [row.slug, installedOf(row)]));
    for (const row of own) bySlug.set(row.slug, ownOf(row));
    return [...bySlug.values()].sort((a, b) => (a.slug < b.slug ? -1 : 1));
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
    // Postgres has no text with U+0000, so nothing is called that.
    if (slugOrId.includes('\0')) return undefined;
    const where = isUuid(slugOrId) ? { OR: [{ slug: slugOrId }, { id: slugOrId }] } : { slug: slugOrId };
    // The queries are the same whatever exists, so the duration does not reveal agents of other tenants.
    const [own, installed, names] = await Promise.all([
      this.catalog.inTenant(tenantId, (prisma) =>
        prisma.catalogAgent.findFirst({
          where: { tenantId, ...where },
          orderBy: { deletedAt: { sort: 'desc', nulls: 'first' } },
        }),
      ),
      this.catalog.run((prisma) => prisma.installedAgent.findMany({ where })),
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
    const json = definition as unknown as Prisma.InputJsonObject;
    const data = { definition: json, everyTenant: tenants === null, tenants: tenants ?? [] };
    await this.catalog.run((prisma) =>
      prisma.installedAgent.upsert({ where: { slug }, create: { slug, ...data }, update: data }),
    );
  }

  /** The names by which an installed agent may list the tenant. */
  private async namesOf(tenantId: string): Promise<string[]> {
    const tenant = await this.catalog.inTenant(tenantId, (prisma) =>
      prisma.tenant.findUnique({ where: { id: tenantId } }),
    );
    return tenant ? [tenantId, tenant.slug] : [tenantId];
  }
}

const isOpenTo = (names: readonly string[], { everyTenant, tenants }: InstalledAgent): boolean =>
  everyTenant || tenants.some((name) => names.includes(name));

const installedOf = ({ id, slug, definition }: InstalledAgent): Agent => ({
  ...{ id, slug, origin: 'installed' },
  definition: definition as unknown as AgentDefinition,
});

function ownOf({ id, slug, definition, version, enabled, deletedAt }: CatalogAgent): Agent {
  const status = deletedAt ? ('deleted' as const) : enabled ? undefined : ('disabled' as const);
  return {
    ...{ id, slug, origin: 'catalog', version },
    definition: definition as unknown as AgentDefinition,
    ...(status && { status }),
  };
}
