import { isUuid } from '@baton/a2a';
import { type LimitName, type LimitOverrides, storedLimits } from '@baton/config';
import { Injectable } from '@nestjs/common';
import { randomUUID } from 'node:crypto';
import { type Actor, PLATFORM } from '../audit/audit-records.js';
import { deletionRecordId } from '../audit/audit-sql.js';
import { CatalogClient } from '../connection/catalog-client.js';
import { explainTaken } from '../connection/name-taken-error.js';
import type { Statement } from '../connection/database.js';
import type { Tenant as TenantRow } from '../generated/client.js';
import type { PageAfter, Tenant } from './tenant-records.js';

/** $1 tenants */
const BY_IDS: Statement = {
  name: 'tenants-by-ids',
  text: `SELECT id::text, slug, default_agent AS "defaultAgent", index_model AS "indexModel",
    index_model_url AS "indexModelUrl", limits, predates_retention AS "predatesRetention", egress_allow AS "egressAllow", egress_deny AS "egressDeny",
    suspended_at AS "suspendedAt", suspended_reason AS "suspendedReason", deleting_at AS "deletingAt",
    created_at AS "createdAt", EXISTS (SELECT FROM spending_caps c WHERE c.tenant_id = t.id) AS "hasSpendingCaps"
    FROM tenants t WHERE id = ANY ($1::uuid[])`,
};

/** $1 tenants */
const INACTIVE: Statement = {
  name: 'tenants-inactive',
  text: `SELECT k.id::text FROM unnest($1::uuid[]) AS k(id)
    WHERE NOT EXISTS (SELECT FROM tenants t WHERE t.id = k.id AND t.suspended_at IS NULL AND t.deleting_at IS NULL)`,
};

/** Tenants. */
@Injectable()
export class TenantStore {
  constructor(private readonly catalog: CatalogClient) {}

  /** Rejects with `NameTakenError` if the slug is taken. */
  async create(slug: string, by: Actor): Promise<Tenant> {
    const id = randomUUID();
    const created = this.catalog.change(id, async (prisma, record) => {
      const tenant = await prisma.tenant.create({ data: { id, slug } });
      await record({ action: 'tenant.create', target: targetOf(slug), by });
      return tenantOf(tenant);
    });
    return created.catch(explainTaken(`The tenant '${slug}' already exists`));
  }

  /** By slug, in the order of the database. @param page unset = all */
  async list(page?: PageAfter): Promise<Tenant[]> {
    const rows = await this.catalog.run((prisma) =>
      prisma.tenant.findMany({
        where: { slug: { gt: page?.after ?? '' } },
        orderBy: { slug: 'asc' },
        ...(page && { take: page.limit }),
      }),
    );
    return rows.map(tenantOf);
  }

  /** The tenants with what they keep in the database (`storedBytes`). */
  async withStoredBytes(tenants: readonly Tenant[]): Promise<Tenant[]> {
    const tenantId = { in: tenants.map(({ id }) => id) };
    const usages = await this.catalog.run((prisma) =>
      prisma.tenantUsage.findMany({ where: { tenantId, isCounted: true } }),
    );
    const bytes = new Map(
      usages.map((of) => [of.tenantId, Number(of.storedBytes + (of.catalogBytes ?? 0n))]),
    );
    return tenants.map((tenant) => ({ ...tenant, storedBytes: bytes.get(tenant.id) ?? null }));
  }

  async bySlug(slug: string): Promise<Tenant | undefined> {
    const row = await this.catalog.run((prisma) => prisma.tenant.findUnique({ where: { slug } }));
    return row ? tenantOf(row) : undefined;
  }

  async byId(id: string): Promise<Tenant | undefined> {
    if (!isUuid(id)) return undefined;
    const [tenant] = await this.catalog.queryInTenant<Tenant>(id, BY_IDS, [[id]]);
    return tenant && { ...tenant, limits: storedLimits(tenant.limits) };
  }

  /** Like `byId`, for many at once. */
  async byIds(ids: readonly string[]): Promise<Map<string, Tenant>> {
    const rows = await this.catalog.query<Tenant>(BY_IDS, [ids.filter(isUuid)]);
    return new Map(rows.map((row) => [row.id, { ...row, limits: storedLimits(row.limits) }]));
  }

  /** The given tenants that are suspended, are being deleted, or do not exist. */
  async inactive(ids: readonly string[]): Promise<string[]> {
    const rows = await this.catalog.query<{ id: string }>(INACTIVE, [ids]);
    return rows.map(({ id }) => id);
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
    data: Partial<
      Pick<Tenant, 'defaultAgent' | 'indexModel' | 'indexModelUrl' | 'egressAllow' | 'egressDeny'>
    >,
    by: Actor,
  ): Promise<Tenant | undefined> {
    const found = await this.bySlug(slug);
    if (!found) return undefined;
    return this.catalog.change(found.id, async (prisma, record) => {
      const [tenant] = await prisma.tenant.updateManyAndReturn({ where: { id: found.id }, data });
      if (tenant) await record({ action: 'tenant.update', target: targetOf(slug), by, detail: data });
      return tenant && tenantOf(tenant);
    });
  }

  /**
   * Suspend the tenant, or change the reason.
   * @param reason in the errors of its callers
   * @returns undefined if there is no such tenant
   */
  async suspend(slug: string, reason: string | null, by: Actor): Promise<Tenant | undefined> {
    const found = await this.bySlug(slug);
    if (!found) return undefined;
    await this.catalog.change(found.id, async (prisma, record) => {
      const count = await prisma.$executeRaw`
        UPDATE tenants SET suspended_at = coalesce(suspended_at, now()), suspended_reason = ${reason}
        WHERE id = ${found.id}::uuid AND deleting_at IS NULL`;
      const target = targetOf(slug);
      if (count > 0) await record({ action: 'tenant.suspend', target, by, detail: { reason } });
    });
    return this.bySlug(slug);
  }

  /** End the suspension, unless the tenant is being deleted. @returns undefined if there is no such tenant */
  async resume(slug: string, by: Actor): Promise<Tenant | undefined> {
    const found = await this.bySlug(slug);
    if (!found) return undefined;
    await this.catalog.change(found.id, async (prisma, record) => {
      const { count } = await prisma.tenant.updateMany({
        where: { id: found.id, deletingAt: null },
        data: { suspendedAt: null, suspendedReason: null },
      });
      if (count > 0) await record({ action: 'tenant.resume', target: targetOf(slug), by });
    });
    return this.bySlug(slug);
  }

  /**
   * The tenant is to be deleted. It stays suspended. The log of the platform has one record of it: without this record the database
   * deletes no record of the tenant.
   * @returns undefined if there is no such tenant
   */
  async markDeleting(slug: string, by: Actor): Promise<Tenant | undefined> {
    await this.catalog.changeAcross(PLATFORM, async (prisma, record) => {
      const [found] = await prisma.$queryRaw<{ id: string }[]>`
        UPDATE tenants SET deleting_at = coalesce(deleting_at, now()), suspended_at = coalesce(suspended_at, now())
        WHERE slug = ${slug} RETURNING id::text`;
      if (!found) return;
      const target = { kind: 'tenant', name: slug } as const;
      await record({ id: deletionRecordId(found.id), action: 'tenant.delete', target, by });
    });
    return this.bySlug(slug);
  }

  /**
   * Set limits, or reset them to the default. Other limits do not change.
   * @returns undefined if there is no such tenant
   */
  async setLimits(
    slug: string,
    values: LimitOverrides,
    defaults: readonly LimitName[],
    by: Actor,
  ): Promise<Tenant | undefined> {
    const json = JSON.stringify(values);
    const found = await this.bySlug(slug);
    if (!found) return undefined;
    await this.catalog.change(found.id, async (prisma, record) => {
      await prisma.$executeRaw`
        UPDATE tenants SET limits = ((limits::jsonb || ${json}::jsonb) - ${[...defaults]}::text[])::json
        WHERE id = ${found.id}::uuid`;
      const detail = { set: values, reset: defaults };
      await record({ action: 'limits.change', target: targetOf(slug), by, detail });
    });
    return this.bySlug(slug);
  }
}

const targetOf = (name: string) => ({ kind: 'tenant', name }) as const;

const tenantOf = ({ limits, ...row }: TenantRow): Tenant => ({ ...row, limits: storedLimits(limits) });
