import { LRUCache } from 'lru-cache';

/** How long a key stays isolated or suspect, in milliseconds. */
const ISOLATED_MS = 10_000;
/** Maximum number of keys that are known as isolated or suspect. */
const MAX_KEYS = 10_000;
/** A suspect that takes as long as this is isolated, in milliseconds: it would hold up the others. */
const SLOW_MS = 100;

/**
 * Which batch keys share no transactions with others for a while, because a transaction that they shared was rolled back. So a
 * tenant with a locked row, or with a value that Postgres refuses, holds up other tenants once and not each time.
 *
 * ```
 *            Postgres names its tenant
 *   shared ─────────────────────────────────────────▶ isolated ── after 10 s ──▶ shared
 *     │                                                  ▲
 *     │ the tenant is unknown: each key                  │ it fails alone as well,
 *     │ of the transaction is written alone              │ or takes 100 ms
 *     └───────────────────────────────────▶ suspect ─────┤
 *                                                        │ it succeeds alone
 *                                                        └──▶ shared
 * ```
 */
export class BatchIsolation {
  private readonly keys = new LRUCache<string, { state: 'isolated' | 'suspect'; until: number }>({
    maxSize: MAX_KEYS,
    sizeCalculation: () => 1,
  });

  /** Whether a key may share a transaction with others. */
  mayShare(key: string): boolean {
    const { until = -Infinity } = this.keys.get(key) ?? {};
    return performance.now() >= until;
  }

  /** Postgres has named the tenant of this key. */
  isolate(key: string): void {
    this.enter(key, 'isolated');
  }

  /**
   * The transaction had several keys, and any of them may be the reason.
   * @returns to be called once the key was written alone, with whether it succeeded at the first try
   */
  suspect(key: string): (succeeded: boolean) => void {
    const since = performance.now();
    if (this.mayShare(key)) this.enter(key, 'suspect');
    return (succeeded) => {
      if (this.keys.get(key)?.state === 'isolated') return;
      if (succeeded && performance.now() - since < SLOW_MS) this.keys.delete(key);
      else this.isolate(key);
    };
  }

  private enter(key: string, state: 'isolated' | 'suspect'): void {
    this.keys.set(key, { state, until: performance.now() + ISOLATED_MS });
  }
}
