import { type HostBinding, HostStore, hostName } from '@baton/database';
import { Messaging, TenantCache } from '@baton/messaging';
import { Injectable, type OnApplicationShutdown, type OnModuleInit } from '@nestjs/common';
import type { CallRequest } from '../http/requests.js';

/** A changed binding is in force everywhere within this time, even if the control message is lost. */
const CACHE_MS = 1_000;

/** The bindings of host names. */
@Injectable()
export class HostBindings implements OnModuleInit, OnApplicationShutdown {
  private readonly cache: TenantCache<HostBinding>;

  constructor(hosts: HostStore, messaging: Messaging) {
    this.cache = new TenantCache(messaging, {
      load: (host) => hosts.find(host),
      ttlMs: CACHE_MS,
      staleAfter: ({ type }) => (type === 'catalog-changed' ? 'all' : 'none'),
    });
  }

  async onModuleInit(): Promise<void> {
    await this.cache.start();
  }

  onApplicationShutdown(): void {
    this.cache.stop();
  }

  /** Only the `Host` header counts: callers can forge the other headers of proxies. */
  async find(request: CallRequest): Promise<HostBinding | undefined> {
    return this.cache.get(hostName(request.headers.host ?? ''));
  }
}
