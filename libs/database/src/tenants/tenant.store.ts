import { isUuid } from '@baton/a2a';
import type { LimitName, LimitOverrides } from '@baton/config';
import { Injectable } from '@nestjs/common';
import { CatalogClient } from '../connection/catalog-client.js';
import type { Tenant as TenantRow } from '../generated/client.js';
import type { Tenant } from './tenant-records.js';

/** Tenants. */
@Injectable()
export class TenantStore {
  constructor(private readonly catalog: CatalogClient) {}

  /** Rejects with `NameTakenError` if the slug is taken. */
  async create(slug: string): Promise<Tenant> {
    const taken = `The tenant '${slug}' already exists`;
    return this.catalog.insert(taken, async (prisma) =>
      tenantOf(await prisma.tenant.create({ data: { slug } })),
    );
  }

  async list(): Promise<Tenant[]> {
    const rows = await this.catalog.run((prisma) => prisma.tenant.findMany({ orderBy: { slug: 'asc' } }));
    return rows.map(tenantOf);
  }

  async bySlug(slug: string): Promise<Tenant | undefined> {
    const row = await this.catalog.run((prisma) => prisma.tenant.findUnique({ where: { slug } }));
    return row ? tenantOf(row) : undefined;
  }

  async byId(id: string): Promise<Tenant | undefined> {
    if (!isUuid(id)) return undefined;
    const row = await this.catalog.inTenant(id, (prisma) => prisma.tenant.findUnique({ where: { id } }));
    return row ? tenantOf(row) : undefined;
  }

  /** Tasks counted so far by the first count of the tenant's stored bytes; undefined unless that count is running. */
  async countedTasks(tenantId: string): Promise<number | undefined> {
    const usage = await this.catalog.inTenant(tenantId, (prisma) =>
      prisma.tenantUsage.findUnique({ where: { tenantId } }),
    );
    return usage && !usage.isCounted ? Number(usage.countingTasks) : undefined;
  }

  /** Undefined: there is no such tenant. */
  async set(
    slug: string,
    data: Partial<Pick<Tenant, 'defaultAgent' | 'indexModel' | 'indexModelUrl'>>,
  ): Promise<Tenant | undefined> {
    const [tenant] = await this.catalog.run((prisma) =>
      prisma.tenant.updateManyAndReturn({ where: { slug }, data }),
    );
    return tenant && tenantOf(tenant);
  }

  /**
   * Suspend the tenant, or change the reason.
   * @param reason what its callers are told
   * @returns undefined if there is no such tenant
   */
  async suspend(slug: string, reason: string | null): Promise<Tenant | undefined> {
    await this.catalog.run(
      (prisma) => prisma.$executeRaw`
        UPDATE tenants SET suspended_at = coalesce(suspended_at, now()), suspended_reason = ${reason}
        WHERE slug = ${slug} AND deleting_at IS NULL`,
    );
    return this.bySlug(slug);
  }

  /** End the suspension, unless the tenant is being deleted. @returns undefined if there is no such tenant */
  async resume(slug: string): Promise<Tenant | undefined> {
    await this.catalog.run((prisma) =>
      prisma.tenant.updateMany({
        where: { slug, deletingAt: null },
        data: { suspendedAt: null, suspendedReason: null },
      }),
    );
    return this.bySlug(slug);
  }

  /** The tenant is to be deleted. It is suspended for good. @returns undefined if there is no such tenant */
  async markDeleting(slug: string): Promise<Tenant | undefined> {
    await this.catalog.run(
      (prisma) => prisma.$executeRaw`
        UPDATE tenants SET deleting_at = coalesce(deleting_at, now()), suspended_at = coalesce(suspended_at, now())
        WHERE slug = ${slug}`,
    );
    return this.bySlug(slug);
  }

  /**
   * Set limits, or reset them to the default. Other limits do not change.
   * @returns undefined if there is no such tenant
   */
  async setLimits(
    slug: string,
    values: LimitOverrides,
    defaults: readonly LimitName[] = [],
  ): Promise<Tenant | undefined> {
    const json = JSON.stringify(values);
    await this.catalog.run(
      (prisma) => prisma.$executeRaw`
        UPDATE tenants SET limits = ((limits::jsonb || ${json}::jsonb) - ${[...defaults]}::text[])::json
        WHERE slug = ${slug}`,
    );
    return this.bySlug(slug);
  }
}

const tenantOf = ({ limits, ...row }: TenantRow): Tenant => ({ ...row, limits: limits as LimitOverrides });
