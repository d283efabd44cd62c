import { type ApiToken, TokenStore } from '@baton/database';
import { untilStatementEnded } from '@baton/postgres';
import { clock, FailureLog, Logger } from '@baton/telemetry';
import { LRUCache } from 'lru-cache';

/** Minimum time between two writes of the last use of one token, in ms. */
const EACH_USE_MS = 60_000;
/** How long uses of several tokens are collected for one statement, in ms. */
const COLLECT_USES_MS = 1_000;
/** With more tokens in use, some uses are stored more often. */
const MAX_USED_TOKENS = 10_000;

/** When tokens were last used. A process stores it once a minute for each token, beside the requests. */
export class TokenUses {
  private readonly noted = new LRUCache<string, true>({
    maxSize: MAX_USED_TOKENS,
    sizeCalculation: () => 1,
    ttl: EACH_USE_MS,
  });
  private readonly waiting = new Map<string, { id: string; tenantId: string; at: Date }>();
  private readonly failures: FailureLog;
  private timer: NodeJS.Timeout | undefined;
  private isStoring = false;

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
    this.waiting.set(id, { id, tenantId, at: clock.date() });
    this.flushLater();
  }

  private flushLater(): void {
    if (!this.isStoring) this.timer ??= setTimeout(() => void this.flush(), COLLECT_USES_MS).unref();
  }

  /** Stores what was noted. Never rejects: what fails is noted again with the next use after a minute. */
  async flush(): Promise<void> {
    clearTimeout(this.timer);
    this.timer = undefined;
    const uses = [...this.waiting.values()];
    this.waiting.clear();
    if (uses.length === 0) return;
    this.isStoring = true;
    await this.store.noteUses(uses).then(
      () => this.failures.worked(),
      (error: unknown) => {
        this.failures.failed(error);
        return untilStatementEnded(error);
      },
    );
    this.isStoring = false;
    if (this.waiting.size > 0) this.flushLater();
  }
}
