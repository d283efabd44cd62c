import { type HostBinding, HostStore, hostName } from '@baton/database';
import { Messaging, TenantCache } from '@baton/messaging';
import { Injectable, type OnApplicationShutdown, type OnModuleInit } from '@nestjs/common';
import type { FastifyRequest } from 'fastify';

/** A host that is bound or unbound is so everywhere within this time, even if the control message is lost. */
const CACHE_MS = 1_000;

/** What the host name that a request was sent to is bound to. */
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

  /** Only the `Host` header counts: what a proxy forwards besides, a caller can send as well. */
  async of(request: FastifyRequest): Promise<HostBinding | undefined> {
    return this.cache.get(hostName(request.headers.host ?? ''));
  }
}
