import { RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible';
import { QuietLog } from './quiet-log.js';
import { type Rate, RateCounters } from './rate-counters.js';

/** Answers on request, and keeps its questions. */
class SlowCounter extends RateLimiterMemory {
  readonly asked: number[] = [];
  private readonly held: (() => void)[] = [];

  override async consume(key: string, points = 1): Promise<RateLimiterRes> {
    this.asked.push(points);
    await new Promise<void>((resolve) => this.held.push(resolve));
    return super.consume(key, points);
  }

  answer(): void {
    this.held.shift()?.();
  }
}

describe('request rates', () => {
  const silent = new QuietLog({ warn: () => undefined, info: () => undefined } as never);
  const spend = (rates: RateCounters, count: number, limit: number) =>
    Array.from({ length: count }, () => rates.spend('key', limit, 60));

  it('of a burst are asked for in two questions, and exactly the limit is let in', async () => {
    const counter = new SlowCounter({ points: 10, duration: 60 });
    const all = spend(new RateCounters(() => counter, silent), 40, 10);
    counter.answer();
    await all[0];
    counter.answer();
    const allowed = (await Promise.all(all)).map((spending) => spending.allowed);
    expect(allowed).toEqual(Array.from({ length: 40 }, (_, i) => i < 10));
    expect(counter.asked).toEqual([1, 39]);
  });

  it('refuse all without a request while the window is full', async () => {
    class Full extends RateLimiterMemory {
      override consume(): Promise<RateLimiterRes> {
        // oxlint-disable-next-line typescript/prefer-promise-reject-errors -- what the library rejects with
        return Promise.reject(new RateLimiterRes(0, 500, 0, false));
      }
    }
    const rates = new RateCounters((rate) => new Full(rate), silent);
    const refused = { allowed: false, retryAfterMs: 500 };
    expect(await Promise.all(spend(rates, 3, 1))).toEqual([refused, refused, refused]);
  });

  it('of a burst are counted in the process when the shared counter does not answer the first request', async () => {
    const asked: number[] = [];
    class Away extends RateLimiterMemory {
      override consume(_key: string, points = 1): Promise<RateLimiterRes> {
        asked.push(points);
        return Promise.reject(new Error('away'));
      }
    }
    const all = spend(new RateCounters((rate) => new Away(rate), silent), 40, 10);
    const allowed = (await Promise.all(all)).map((spending) => spending.allowed);
    expect(allowed).toEqual(Array.from({ length: 40 }, (_, i) => i < 10));
    expect(asked).toEqual([1]);
  });

  it('have no counters of their own without end: a token can be given any rate', async () => {
    const made: number[] = [];
    const share = (rate: Rate): RateLimiterMemory => {
      made.push(rate.points);
      return new RateLimiterMemory(rate);
    };
    const rates = new RateCounters(share, silent);
    for (let limit = 1; limit <= 1_001; limit++) {
      expect(await rates.spend('key', limit, 60)).toEqual({ allowed: true, retryAfterMs: 0 });
      await rates.spend('key', 1_000_000, 60);
    }
    // The first was used longest ago.
    await rates.spend('key', 1_000_000, 60);
    await rates.spend('key', 1, 60);
    expect(made.filter((points) => points === 1_000_000)).toHaveLength(1);
    expect(made.filter((points) => points === 1)).toHaveLength(2);
  });
});
