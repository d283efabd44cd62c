import { LRUCache } from 'lru-cache';
import { RateLimiterMemory, RateLimiterRes, type RateLimiterAbstract } from 'rate-limiter-flexible';
import { withTimeout } from './with-timeout.js';
import { type QuietLog } from './quiet-log.js';
import type { Spending } from './messaging.js';

/** Timeout of one request to the shared counter. */
const SPEND_MS = 500;
/** Maximum number of rates with counters. Operators set few rates, and tenants any for their tokens. */
const MAX_RATES = 1_000;

/** Maximum number of points in a window of `duration` seconds. */
export interface Rate {
  points: number;
  duration: number;
}

type OnSpending = (spending: Spending) => void;

/** How many of the callers of one request are allowed, and when the others may ask again. */
interface SpendOutcome {
  granted: number;
  retryAfterMs: number;
}

interface Limiters {
  /** Counts for all processes together. */
  shared: RateLimiterAbstract;
  /** Counts for this process while the shared counter is unreachable. */
  own: RateLimiterMemory;
  /** For each key with a read of the shared counter under way: its next caller. */
  waiting: Map<string, OnSpending[]>;
}

/**
 * Counts the points of keys in fixed windows. A window begins with its first spending. A process has one request about a key
 * under way at the shared counter. Spendings that arrive meanwhile share the next request, so a burst does not queue for one row.
 */
export class RateCounters {
  private readonly limiters = new LRUCache<string, Limiters>({
    maxSize: MAX_RATES,
    sizeCalculation: () => 1,
  });

  /** @param share creates the shared counter for one rate */
  constructor(
    private readonly share: (rate: Rate) => RateLimiterAbstract,
    private readonly log: QuietLog,
  ) {}

  /** As `Messaging.spend`: a call costs one point. */
  spend(key: string, limit: number, perSeconds: number): Promise<Spending> {
    const limiters = this.limitersFor({ points: limit, duration: perSeconds });
    return new Promise((resolve) => {
      const waiting = limiters.waiting.get(key);
      if (waiting) waiting.push(resolve);
      else void this.spendAll(limiters, key, resolve);
    });
  }

  private async spendAll(limiters: Limiters, key: string, first: OnSpending): Promise<void> {
    const { own, waiting } = limiters;
    let isAway = false;
    for (let asking = [first]; asking.length > 0; asking = waiting.get(key) ?? []) {
      waiting.set(key, []);
      const count = asking.length;
      // Callers of a request without an answer do not wait for a second one.
      const shared: SpendOutcome | undefined = isAway
        ? undefined
        : await this.askShared(limiters, key, count);
      isAway = shared === undefined;
      const { granted, retryAfterMs } =
        shared ?? (await outcomeOf(own.consume(key, count), own.points, count));
      for (const [i, answer] of asking.entries()) {
        answer(i < granted ? { allowed: true, retryAfterMs: 0 } : { allowed: false, retryAfterMs });
      }
    }
    waiting.delete(key);
  }

  /** Undefined: the shared counter does not answer. */
  private async askShared(
    { shared, own }: Limiters,
    key: string,
    count: number,
  ): Promise<SpendOutcome | undefined> {
    try {
      return await outcomeOf(
        withTimeout(SPEND_MS, shared.consume(key, count), 'no answer in time'),
        own.points,
        count,
      );
    } catch (error) {
      this.log.warn('request rates are not shared: each process counts alone', error);
      return undefined;
    }
  }

  /** One pair of counters for each rate. A rate that was dropped and comes back finds its count on the server. */
  private limitersFor(rate: Rate): Limiters {
    const name = `${rate.points}/${rate.duration}`;
    let limiters = this.limiters.get(name);
    if (!limiters) {
      limiters = { shared: this.share(rate), own: new RateLimiterMemory(rate), waiting: new Map() };
      this.limiters.set(name, limiters);
    }
    return limiters;
  }
}

/**
 * The library resolves when all `count` points are within the limit. Otherwise it rejects with the points of the window,
 * these included, or with 0 if its memory shows that the window is full.
 */
async function outcomeOf(
  consumed: Promise<RateLimiterRes>,
  limit: number,
  count: number,
): Promise<SpendOutcome> {
  try {
    await consumed;
    return { granted: count, retryAfterMs: 0 };
  } catch (error) {
    if (!(error instanceof RateLimiterRes)) throw error;
    const { consumedPoints, msBeforeNext } = error;
    const before = consumedPoints === 0 ? limit : consumedPoints - count;
    return { granted: Math.max(0, limit - before), retryAfterMs: msBeforeNext };
  }
}
