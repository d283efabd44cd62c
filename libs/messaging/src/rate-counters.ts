import { type RateLimiterAbstract, RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible';
import { within, type QuietLog } from './channels.js';
import type { Spending } from './messaging.js';

/** No request waits longer than this to be counted. */
const SPEND_MS = 500;

/** How much may be spent, in how many seconds. */
export interface Rate {
  points: number;
  duration: number;
}

interface Limiters {
  /** Counts for all processes. */
  shared: RateLimiterAbstract;
  /** Counts for this one, while the shared counters are out of reach. */
  own: RateLimiterMemory;
}

/** Counts what keys spend in fixed spans of time, each of which begins with the first spending in it. */
export class RateCounters {
  private readonly limiters = new Map<string, Limiters>();

  /** @param share makes the counters that all processes share, for one rate */
  constructor(
    private readonly share: (rate: Rate) => RateLimiterAbstract,
    private readonly log: QuietLog,
  ) {}

  async spend(key: string, limit: number, perSeconds: number): Promise<Spending> {
    const { shared, own } = this.limitersFor({ points: limit, duration: perSeconds });
    try {
      return await outcomeOf(within(SPEND_MS, shared.consume(key), 'no answer in time'));
    } catch (error) {
      this.log.warn('rates are not counted together: each process counts for itself', error);
      return outcomeOf(own.consume(key));
    }
  }

  /** One pair a rate: operators set few different ones. */
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

/** The library resolves what is allowed, and rejects with a result what is not. */
async function outcomeOf(consumed: Promise<RateLimiterRes>): Promise<Spending> {
  try {
    await consumed;
    return { allowed: true, retryAfterMs: 0 };
  } catch (error) {
    if (error instanceof RateLimiterRes) return { allowed: false, retryAfterMs: error.msBeforeNext };
    throw error;
  }
}
