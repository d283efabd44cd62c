import { LRUCache } from 'lru-cache';
import type { ServerEra } from './server-connection.js';

/** After this time Baton asks the server again, because it may have been replaced. */
const KEPT_MS = 60 * 60 * 1000;

/** Cache of the protocol era of each server. */
export class ServerEras {
  private readonly known = new LRUCache<string, ServerEra>({ max: 5_000, ttl: KEPT_MS });

  find(tenantId: string, url: string): ServerEra | undefined {
    return this.known.get(`${tenantId} ${url}`);
  }

  learn(tenantId: string, url: string, era: ServerEra): void {
    this.known.set(`${tenantId} ${url}`, era);
  }

  forget(tenantId: string, url: string): void {
    this.known.delete(`${tenantId} ${url}`);
  }
}
