import { Environment } from '@baton/config';
import { type LimitOverrides, TenantStore } from '@baton/database';
import { Messaging, type Unsubscribe } from '@baton/messaging';
import { Injectable, type OnModuleDestroy, type OnModuleInit } from '@nestjs/common';
import { LRUCache } from 'lru-cache';

/** What one tenant may use; null = no limit. */
export type TenantLimits = Required<LimitOverrides>;

const MAX_TENANTS = 10_000;

/**
 * What each tenant may use: the defaults of the environment and what the operator has set apart from them. A
 * change is in force everywhere within TOKEN_CACHE_MS, and as a rule at once, for every process is told.
 */
@Injectable()
export class LimitsService implements OnModuleInit, OnModuleDestroy {
  private readonly cache: LRUCache<string, TenantLimits>;
  private readonly defaults: TenantLimits;
  private readonly subscriptions: Unsubscribe[] = [];

  constructor(
    private readonly tenants: TenantStore,
    private readonly messaging: Messaging,
    environment: Environment,
  ) {
    this.defaults = { ...environment.defaultLimits, weight: 1 };
    this.cache = new LRUCache({
      max: MAX_TENANTS,
      ttl: environment.tokenCacheMs,
      fetchMethod: (tenantId: string) => this.load(tenantId),
      // A look-up whose place was cleared meanwhile still answers whoever waits for it.
      ignoreFetchAbort: true,
      // What held a moment ago holds while the database can't be asked.
      allowStaleOnFetchRejection: true,
    });
  }

  async onModuleInit(): Promise<void> {
    this.subscriptions.push(
      await this.messaging.subscribeControl((message) => {
        if (message.type === 'limits-changed') this.cache.delete(message.tenantId);
      }),
      this.messaging.onReconnect(() => this.cache.clear()),
    );
  }

  onModuleDestroy(): void {
    for (const unsubscribe of this.subscriptions) unsubscribe();
  }

  /** The limits of a tenant. Rejects only when the database can't be asked. */
  async of(tenantId: string): Promise<TenantLimits> {
    return (await this.cache.fetch(tenantId)) ?? this.defaults;
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
