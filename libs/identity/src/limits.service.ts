import { ProtocolError } from '@baton/a2a';
import { defaultLimitsOf, Environment, type TenantLimits } from '@baton/config';
import { type Tenant, TenantStore } from '@baton/database';
import { GroupedReads, Messaging, TenantCache } from '@baton/messaging';
import { type EgressLists, NO_EGRESS_LISTS } from '@baton/outbound';
import { Injectable, type OnModuleDestroy, type OnModuleInit } from '@nestjs/common';

/** The data of a tenant that every request needs. */
interface TenantTerms {
  /** Undefined if there is no such tenant. */
  slug: string | undefined;
  limits: TenantLimits;
  /** `gone`: the tenant does not exist, or is being deleted. */
  state: 'active' | 'suspended' | 'gone';
  /** Reason of the suspension. */
  reason: string | null;
  /** Where its agents may call. */
  egress: EgressLists;
  /** Whether there are caps of what it may spend. */
  hasSpendingCaps: boolean;
}

/**
 * What the operator allows each tenant: its limits (its own values, and the defaults of the environment for the rest), and
 * whether it is suspended. A change takes effect at once, because every process is informed; while messaging does not
 * answer, within TOKEN_CACHE_MS.
 */
@Injectable()
export class LimitsService implements OnModuleInit, OnModuleDestroy {
  private readonly cache: TenantCache<TenantTerms>;

  constructor(
    private readonly tenants: TenantStore,
    messaging: Messaging,
    private readonly environment: Environment,
  ) {
    const reads = new GroupedReads((tenantIds) => tenants.byIds(tenantIds));
    this.cache = new TenantCache(messaging, {
      load: async (tenantId) => this.termsOf(await reads.read(tenantId)),
      ttlMs: environment.tokenCacheMs,
      staleAfter: (message) =>
        message.type === 'limits-changed' || message.type === 'tenant-suspended'
          ? (tenantId) => tenantId === message.tenantId
          : 'none',
      allowStaleOnError: true,
    });
  }

  async onModuleInit(): Promise<void> {
    await this.cache.start();
  }

  onModuleDestroy(): void {
    this.cache.stop();
  }

  /** The limits of a tenant. Rejects only when the database cannot be asked. */
  async get(tenantId: string): Promise<TenantLimits> {
    return (await this.cache.get(tenantId))?.limits ?? this.environment.defaultLimits;
  }

  /** Where the agents of a tenant may call. Rejects only when the database cannot be asked. */
  async egress(tenantId: string): Promise<EgressLists> {
    return (await this.cache.get(tenantId))?.egress ?? NO_EGRESS_LISTS;
  }

  /** Whether there are caps of what the tenant, or something of it, may spend. Rejects only when the database cannot be asked. */
  async hasSpendingCaps(tenantId: string): Promise<boolean> {
    return (await this.cache.get(tenantId))?.hasSpendingCaps ?? false;
  }

  /** Throws `tenant-suspended` with the operator's reason, or `unauthenticated` if the tenant is deleted. */
  async assertActive(tenantId: string): Promise<void> {
    const terms = await this.cache.get(tenantId);
    if (terms?.state === 'suspended') {
      const reason = terms.reason ?? 'ask the operator why';
      throw new ProtocolError('tenant-suspended', `the tenant is suspended: ${reason}`);
    }
    if (terms?.state === 'gone') throw new ProtocolError('unauthenticated', 'the token is not known');
  }

  /** The given tenants that `assertActive` refuses. Reads the database, in one statement. */
  async inactive(tenantIds: readonly string[]): Promise<ReadonlySet<string>> {
    const inactive = new Set(await this.tenants.inactive(tenantIds));
    if (inactive.size > 0) this.cache.forget((tenantId) => inactive.has(tenantId));
    return inactive;
  }

  /** Whether a name means this tenant: its slug, or its id. */
  async isNamed(tenantId: string, name: string): Promise<boolean> {
    return name === tenantId || name === (await this.cache.get(tenantId))?.slug;
  }

  /** The slug of a tenant. Empty if it is deleted. */
  async slugOf(tenantId: string): Promise<string> {
    return (await this.cache.get(tenantId))?.slug ?? '';
  }

  /** Whether the tenant is deleted, or is being deleted: nothing may be stored for it. */
  async isGone(tenantId: string): Promise<boolean> {
    return (await this.cache.get(tenantId))?.state === 'gone';
  }

  /** Read the tenant again: this process has changed it, and its own notification may arrive after the next request. */
  forget(tenantId: string): void {
    this.cache.forget((key) => key === tenantId);
  }

  /** The limits of every tenant that stays, as they are in the database. */
  async all(): Promise<{ tenantId: string; limits: TenantLimits }[]> {
    const tenants = await this.tenants.list();
    return tenants
      .filter(({ deletingAt }) => !deletingAt)
      .map((tenant) => ({ tenantId: tenant.id, limits: this.inForce(tenant) }));
  }

  /** Tenants of an earlier release without a retention: they keep all their ended tasks. */
  async withoutRetention(): Promise<string[]> {
    if (this.environment.isRetentionSet) return [];
    const tenants = await this.tenants.list();
    return tenants
      .filter(({ predatesRetention, limits }) => predatesRetention && limits.retentionDays === undefined)
      .map(({ slug }) => slug);
  }

  private inForce(tenant: Tenant | undefined): TenantLimits {
    return { ...defaultLimitsOf(this.environment, tenant), ...tenant?.limits };
  }

  private termsOf(tenant: Tenant | undefined): TenantTerms {
    return {
      slug: tenant?.slug,
      limits: this.inForce(tenant),
      state: stateOf(tenant),
      reason: tenant?.suspendedReason ?? null,
      egress: tenant ? { allow: tenant.egressAllow, deny: tenant.egressDeny } : NO_EGRESS_LISTS,
      hasSpendingCaps: tenant?.hasSpendingCaps ?? false,
    };
  }
}

function stateOf(tenant: Tenant | undefined): TenantTerms['state'] {
  if (!tenant || tenant.deletingAt) return 'gone';
  return tenant.suspendedAt ? 'suspended' : 'active';
}
