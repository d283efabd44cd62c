import type { Agent, AgentDefinition } from '@baton/a2a';
import { Injectable } from '@nestjs/common';
import { CatalogClient } from './catalog-client.js';
import type { InstalledAgent, Prisma } from './generated/client.js';
import type { NewAgent } from './catalog-records.js';
import { isUuid } from './uuid.js';

/** Agents: a tenant's own rows, and those installed for every tenant. */
@Injectable()
export class AgentStore {
  constructor(private readonly catalog: CatalogClient) {}

  /** Rejects with `NameTakenError` if the tenant has an agent of that slug. */
  async create({ tenantId, slug, definition }: NewAgent): Promise<Agent> {
    const data = { tenantId, slug, definition: json(definition) };
    const taken = `The tenant already has an agent '${slug}'`;
    return agentOf(
      'catalog',
      await this.catalog.insert(taken, () =>
        this.catalog.inTenant(tenantId, (prisma) => prisma.catalogAgent.create({ data })),
      ),
    );
  }

  /** The tenant's own agents and the installed ones it may use, by slug; its own hide those of the same slug. */
  async list(tenantId: string): Promise<Agent[]> {
    const [own, installed, names] = await Promise.all([
      this.catalog.inTenant(tenantId, (prisma) => prisma.catalogAgent.findMany({ where: { tenantId } })),
      this.catalog.run((prisma) => prisma.installedAgent.findMany()),
      this.namesOf(tenantId),
    ]);
    const open = installed.filter((agent) => isOpenTo(names, agent));
    const bySlug = new Map(open.map((row) => [row.slug, agentOf('installed', row)]));
    for (const row of own) bySlug.set(row.slug, agentOf('catalog', row));
    return [...bySlug.values()].sort((a, b) => (a.slug < b.slug ? -1 : 1));
  }

  /** By slug or id: the tenant's own first, then the installed ones. */
  async find(tenantId: string, slugOrId: string): Promise<Agent | undefined> {
    // Postgres has no text with U+0000, so nothing is called that.
    if (slugOrId.includes('\0')) return undefined;
    const where = isUuid(slugOrId) ? { OR: [{ slug: slugOrId }, { id: slugOrId }] } : { slug: slugOrId };
    // The same queries whatever there is: how long it takes does not tell of agents that are for others.
    const [own, installed, names] = await Promise.all([
      this.catalog.inTenant(tenantId, (prisma) =>
        prisma.catalogAgent.findFirst({ where: { tenantId, ...where } }),
      ),
      this.catalog.run((prisma) => prisma.installedAgent.findMany({ where })),
      this.namesOf(tenantId),
    ]);
    if (own) return agentOf('catalog', own);
    const open = installed.find((agent) => isOpenTo(names, agent));
    return open && agentOf('installed', open);
  }

  /** @returns whether the tenant had such an agent */
  async remove(tenantId: string, slug: string): Promise<boolean> {
    const { count } = await this.catalog.inTenant(tenantId, (prisma) =>
      prisma.catalogAgent.deleteMany({ where: { tenantId, slug } }),
    );
    return count > 0;
  }

  /**
   * Called by a worker at boot for each folder of BATON_AGENTS_DIR; workers that do it at once agree.
   * @param tenants slugs or ids of the tenants that may use it; null = every tenant
   */
  async install(slug: string, definition: AgentDefinition, tenants: string[] | null): Promise<void> {
    const data = { definition: json(definition), everyTenant: tenants === null, tenants: tenants ?? [] };
    await this.catalog.run((prisma) =>
      prisma.installedAgent.upsert({ where: { slug }, create: { slug, ...data }, update: data }),
    );
  }

  /** What an installed agent may call the tenant by. */
  private async namesOf(tenantId: string): Promise<string[]> {
    const tenant = await this.catalog.inTenant(tenantId, (prisma) =>
      prisma.tenant.findUnique({ where: { id: tenantId } }),
    );
    return tenant ? [tenantId, tenant.slug] : [tenantId];
  }
}

const isOpenTo = (names: readonly string[], { everyTenant, tenants }: InstalledAgent): boolean =>
  everyTenant || tenants.some((name) => names.includes(name));

const json = (definition: AgentDefinition): Prisma.InputJsonObject =>
  definition as unknown as Prisma.InputJsonObject;

const agentOf = (origin: Agent['origin'], row: { id: string; slug: string; definition: unknown }): Agent => ({
  id: row.id,
  slug: row.slug,
  origin,
  definition: row.definition as AgentDefinition,
});
