import { Injectable } from '@nestjs/common';
import { CatalogClient } from './catalog-client.js';
import type { Tenant } from './records.js';
import { isUuid } from './uuid.js';

/** Tenants. */
@Injectable()
export class TenantStore {
  constructor(private readonly catalog: CatalogClient) {}

  /** Rejects with `NameTakenError` if the slug is taken. */
  async create(slug: string): Promise<Tenant> {
    const taken = `There is already a tenant '${slug}'`;
    return this.catalog.insert(taken, (prisma) => prisma.tenant.create({ data: { slug } }));
  }

  async list(): Promise<Tenant[]> {
    return this.catalog.run((prisma) => prisma.tenant.findMany({ orderBy: { slug: 'asc' } }));
  }

  async bySlug(slug: string): Promise<Tenant | undefined> {
    return (await this.catalog.run((prisma) => prisma.tenant.findUnique({ where: { slug } }))) ?? undefined;
  }

  async byId(id: string): Promise<Tenant | undefined> {
    if (!isUuid(id)) return undefined;
    return (await this.catalog.run((prisma) => prisma.tenant.findUnique({ where: { id } }))) ?? undefined;
  }

  /** Undefined: there is no such tenant. */
  async setDefaultAgent(slug: string, agent: string): Promise<Tenant | undefined> {
    const data = { defaultAgent: agent };
    const [tenant] = await this.catalog.run((prisma) =>
      prisma.tenant.updateManyAndReturn({ where: { slug }, data }),
    );
    return tenant;
  }
}
