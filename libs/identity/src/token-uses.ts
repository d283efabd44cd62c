import type { ApiToken, TokenStore } from '@baton/database';
import { FailureLog, type Logger } from '@baton/telemetry';
import { LRUCache } from 'lru-cache';

/** How often a process stores the use of one token. */
const EACH_MS = 60_000;
/** How long uses of several tokens are collected for one statement. */
const COLLECT_MS = 1_000;
const MAX_TOKENS = 10_000;

/** When tokens were last used. A process stores it once a minute for each token, beside the requests. */
export class TokenUses {
  private readonly noted = new LRUCache<string, true>({ max: MAX_TOKENS, ttl: EACH_MS });
  private readonly waiting = new Map<string, { id: string; tenantId: string; at: Date }>();
  private readonly failures: FailureLog;
  private timer: NodeJS.Timeout | undefined;

  constructor(
    private readonly store: Pick<TokenStore, 'noteUses'>,
    logger: Logger,
  ) {
    this.failures = new FailureLog('Storing when tokens are used', logger);
  }

  /** A request with this token has come in. */
  note({ id, tenantId }: Pick<ApiToken, 'id' | 'tenantId'>): void {
    if (this.noted.has(id)) return;
    this.noted.set(id, true);
    this.waiting.set(id, { id, tenantId, at: new Date() });
    this.timer ??= setTimeout(() => void this.flush(), COLLECT_MS).unref();
  }

  /** Stores what was noted. Never rejects: what fails is noted again with the next use after a minute. */
  async flush(): Promise<void> {
    clearTimeout(this.timer);
    this.timer = undefined;
    const uses = [...this.waiting.values()];
    this.waiting.clear();
    if (uses.length === 0) return;
    await this.store.noteUses(uses).then(
      () => this.failures.worked(),
      (error: unknown) => this.failures.failed(error),
    );
  }
}
