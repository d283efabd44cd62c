import { type RateLimiterAbstract, RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible';
import { within, type QuietLog } from './channels.js';
import type { Spending } from './messaging.js';

/** Maximum time that a request waits for the shared counter. */
const SPEND_MS = 500;

/** Maximum number of points in a window of `duration` seconds. */
export interface Rate {
  points: number;
  duration: number;
}

interface Limiters {
  /** Counts for all processes together. */
  shared: RateLimiterAbstract;
  /** Counts for this process while the shared counter is unreachable. */
  own: RateLimiterMemory;
}

/** Counts the points of keys in fixed windows. A window begins with its first spending. */
export class RateCounters {
  private readonly limiters = new Map<string, Limiters>();

  /** @param share creates the shared counter for one rate */
  constructor(
    private readonly share: (rate: Rate) => RateLimiterAbstract,
    private readonly log: QuietLog,
  ) {}

  async spend(key: string, limit: number, perSeconds: number): Promise<Spending> {
    const { shared, own } = this.limitersFor({ points: limit, duration: perSeconds });
    try {
      return await outcomeOf(within(SPEND_MS, shared.consume(key), 'no answer in time'));
    } catch (error) {
      this.log.warn('request rates are not shared: each process counts alone', error);
      return outcomeOf(own.consume(key));
    }
  }

  /** One pair of counters for each rate. Operators set few different rates. */
  private limitersFor(rate: Rate): Limiters {
    const name = `${rate.points}/${rate.duration}`;
    let limiters = this.limiters.get(name);
    if (!limiters) {
      limiters = { shared: this.share(rate), own: new RateLimiterMemory(rate) };
      this.limiters.set(name, limiters);
    }
    return limiters;
  }
}

/** The library resolves when the spending is allowed. Otherwise it rejects with a result. */
async function outcomeOf(consumed: Promise<RateLimiterRes>): Promise<Spending> {
  try {
    await consumed;
    return { allowed: true, retryAfterMs: 0 };
  } catch (error) {
    if (error instanceof RateLimiterRes) return { allowed: false, retryAfterMs: error.msBeforeNext };
    throw error;
  }
}
