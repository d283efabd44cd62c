import type { ApiToken } from '@baton/database';
import { LRUCache } from 'lru-cache';

const MAX_TOKENS = 10_000;
/** Kept apart, so that a flood of guesses can't push the real ones out. */
const MAX_UNKNOWN = 1000;

/**
 * Tokens by the hash of their secret, for `ttlMs` at most. Requests that miss at the same time share one look-up.
 */
export class TokenCache {
  private readonly known: LRUCache<string, ApiToken>;
  private readonly unknown: LRUCache<string, true>;

  /** @param load the token with this hash, if there is one */
  constructor(ttlMs: number, load: (hash: string) => Promise<ApiToken | undefined>) {
    // A look-up whose place was cleared meanwhile still answers whoever waits for it.
    this.known = new LRUCache({ max: MAX_TOKENS, ttl: ttlMs, fetchMethod: load, ignoreFetchAbort: true });
    this.unknown = new LRUCache({ max: MAX_UNKNOWN, ttl: ttlMs });
  }

  async find(hash: string): Promise<ApiToken | undefined> {
    if (this.unknown.has(hash)) return undefined;
    const token = await this.known.fetch(hash);
    if (!token) this.unknown.set(hash, true);
    return token;
  }

  /** Ask the database again for this token. */
  forget(tokenId: string): void {
    for (const [hash, token] of this.known.entries()) {
      if (token.id === tokenId) this.known.delete(hash);
    }
  }

  clear(): void {
    this.known.clear();
    this.unknown.clear();
  }
}
