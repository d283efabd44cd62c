import { Environment, type TenantLimits } from '@baton/config';
import { TenantStore } from '@baton/database';
import { Messaging, TenantCache } from '@baton/messaging';
import { Injectable, type OnModuleDestroy, type OnModuleInit } from '@nestjs/common';

/**
 * The limits of each tenant: its own values, and the defaults of the environment for the rest. A change takes effect at
 * once, because every process is informed; while messaging does not answer, within TOKEN_CACHE_MS.
 */
@Injectable()
export class LimitsService implements OnModuleInit, OnModuleDestroy {
  private readonly cache: TenantCache<TenantLimits>;
  private readonly defaults: Readonly<TenantLimits>;

  constructor(
    private readonly tenants: TenantStore,
    messaging: Messaging,
    environment: Environment,
  ) {
    this.defaults = environment.defaultLimits;
    this.cache = new TenantCache(messaging, {
      load: (tenantId) => this.load(tenantId),
      ttlMs: environment.tokenCacheMs,
      staleAfter: (message) =>
        message.type === 'limits-changed' ? (tenantId) => tenantId === message.tenantId : 'none',
      allowStaleOnError: true,
    });
  }

  async onModuleInit(): Promise<void> {
    await this.cache.start();
  }

  onModuleDestroy(): void {
    this.cache.stop();
  }

  /** The limits of a tenant. Rejects only when the database can't be asked. */
  async of(tenantId: string): Promise<TenantLimits> {
    return (await this.cache.get(tenantId)) ?? this.defaults;
  }

  /** The limits of every tenant, as they are in the database. */
  async all(): Promise<{ tenantId: string; limits: TenantLimits }[]> {
    const tenants = await this.tenants.list();
    return tenants.map(({ id, limits }) => ({ tenantId: id, limits: { ...this.defaults, ...limits } }));
  }

  private async load(tenantId: string): Promise<TenantLimits> {
    const tenant = await this.tenants.byId(tenantId);
    return { ...this.defaults, ...tenant?.limits };
  }
}
