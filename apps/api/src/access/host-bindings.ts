import { type HostBinding, HostStore, hostName } from '@baton/database';
import { Messaging, type Unsubscribe } from '@baton/messaging';
import { Injectable, type OnApplicationShutdown, type OnModuleInit } from '@nestjs/common';
import type { FastifyRequest } from 'fastify';
import { LRUCache } from 'lru-cache';

/** A host that is bound or unbound is so everywhere within this time, even if the control message is lost. */
const CACHE_MS = 1_000;
const CACHE_SIZE = 1_000;
/** Cached in place of a host that is not bound. */
const NONE = Symbol('not bound');

/** What the host name that a request was sent to is bound to. */
@Injectable()
export class HostBindings implements OnModuleInit, OnApplicationShutdown {
  private readonly cache = new LRUCache<string, HostBinding | typeof NONE>({
    max: CACHE_SIZE,
    ttl: CACHE_MS,
  });
  private stopControl: Unsubscribe | undefined;

  constructor(
    private readonly hosts: HostStore,
    private readonly messaging: Messaging,
  ) {}

  async onModuleInit(): Promise<void> {
    this.stopControl = await this.messaging.subscribeControl((message) => {
      if (message.type === 'catalog-changed') this.cache.clear();
    });
  }

  onApplicationShutdown(): void {
    this.stopControl?.();
  }

  /** Only the `Host` header counts: what a proxy forwards besides, a caller can send as well. */
  async of(request: FastifyRequest): Promise<HostBinding | undefined> {
    const host = hostName(request.headers.host ?? '');
    let found = this.cache.get(host);
    if (found === undefined) {
      found = (await this.hosts.find(host)) ?? NONE;
      this.cache.set(host, found);
    }
    return found === NONE ? undefined : found;
  }
}
