import { LRUCache } from 'lru-cache';
import type { ControlMessage, Messaging, Unsubscribe } from './messaging.js';

/** With more tenants than this, the least used are read again. */
const MAX_ENTRIES = 10_000;
/** Keys without a value are kept apart, so that a flood of guesses does not push the values out. */
const MAX_MISSING = 1_000;
/** Bounded by their number. With `max` a cache allocates 40 bytes for each possible entry at once. */
const sizeCalculation = (): number => 1;

/** Which entries a control message makes stale: none, all, or those for which the function returns true. */
export type StaleEntries<V> = 'none' | 'all' | ((key: string, value: V | undefined) => boolean);

/** Size and lifetime of the entries of a cache. */
export interface TenantCacheOptions<V> {
  /** Reads a value; undefined = there is none. */
  load: (key: string) => Promise<V | undefined>;
  /** How long a value is used, in milliseconds, also if the control message about its change is lost. */
  ttlMs: number;
  /** Which entries a control message makes stale. */
  staleAfter: (message: ControlMessage) => StaleEntries<V>;
  /** Use an expired value while no new one can be read. */
  allowStaleOnError?: boolean;
}

/**
 * Values that every request needs and that tenants or operators change now and then: tokens, limits, agents, hosts.
 * Callers that miss at the same time share one read. A change is in force in every process within `ttlMs`; as a rule at
 * once, because the process that makes it publishes a control message. A process that was cut off from the control channel forgets
 * everything when it is back.
 */
export class TenantCache<V extends object> {
  private readonly values: LRUCache<string, V>;
  private readonly missing: LRUCache<string, true>;
  /** Running reads, shared by all callers of the same key. */
  private readonly reads = new Map<string, Promise<V | undefined>>();
  private readonly subscriptions: Unsubscribe[] = [];
  /** Number of changes. A read that began before a change is not cached. */
  private changes = 0;

  constructor(
    private readonly messaging: Pick<Messaging, 'subscribeControl' | 'onSignalsMissed'>,
    private readonly options: TenantCacheOptions<V>,
  ) {
    const { ttlMs: ttl, allowStaleOnError = false } = options;
    this.values = new LRUCache({
      maxSize: MAX_ENTRIES,
      sizeCalculation,
      ttl,
      noDeleteOnStaleGet: allowStaleOnError,
    });
    this.missing = new LRUCache({ maxSize: MAX_MISSING, sizeCalculation, ttl });
  }

  /** Listen to control messages. */
  async start(): Promise<void> {
    this.subscriptions.push(
      await this.messaging.subscribeControl((message) => this.forget(this.options.staleAfter(message))),
      this.messaging.onSignalsMissed(() => this.forget('all')),
    );
  }

  stop(): void {
    for (const unsubscribe of this.subscriptions.splice(0)) unsubscribe();
  }

  /** The value, cached or read. Rejects as `load` does. */
  async get(key: string): Promise<V | undefined> {
    const value = this.values.get(key);
    if (value !== undefined || this.missing.has(key)) return value;
    let read = this.reads.get(key);
    if (!read) {
      read = this.read(key);
      this.reads.set(key, read);
    }
    return read;
  }

  /** Read these entries again when they are asked for. */
  forget(stale: StaleEntries<V>): void {
    if (stale === 'none') return;
    this.changes += 1;
    this.reads.clear();
    if (stale === 'all') {
      this.values.clear();
      this.missing.clear();
      return;
    }
    // Copies: the caches lose entries meanwhile.
    const [known, missing] = [[...this.values.keys()], [...this.missing.keys()]];
    for (const key of known) {
      if (stale(key, this.values.peek(key))) this.values.delete(key);
    }
    for (const key of missing) {
      if (stale(key, undefined)) this.missing.delete(key);
    }
  }

  private async read(key: string): Promise<V | undefined> {
    const { changes } = this;
    try {
      const value = await this.options.load(key);
      if (changes !== this.changes) return value;
      if (value === undefined) this.missing.set(key, true);
      else this.values.set(key, value);
      return value;
    } catch (error) {
      const expired = this.options.allowStaleOnError && this.values.get(key, { allowStale: true });
      if (expired) return expired;
      throw error;
    } finally {
      if (changes === this.changes) this.reads.delete(key);
    }
  }
}
