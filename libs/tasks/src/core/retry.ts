import { isTransient } from '@baton/database';
import { setTimeout as delay } from 'node:timers/promises';

/** Pauses between tries, in milliseconds: the first one, doubled each time up to the longest. */
export interface Backoff {
  firstMs: number;
  maxMs: number;
}

export interface RetryOptions {
  /** Ends the retries: the last error is thrown then. */
  signal?: AbortSignal;
  /** Unset: a quarter of a second each time. */
  backoff?: Backoff;
  /** Unset: no limit. */
  maxTries?: number;
}

const STEADY: Backoff = { firstMs: 250, maxMs: 250 };

/**
 * Retry until Postgres answers, because an outage must not fail a task. Only for reads and idempotent writes. Rejects
 * with an error that is not transient, or with the last error when the signal aborts or no try is left.
 * @param work gets the number of failed tries: above 0, an earlier try may have been committed and its answer lost
 */
export async function retryTransient<T>(
  work: (failedTries: number) => Promise<T>,
  { signal, backoff = STEADY, maxTries = Infinity }: RetryOptions = {},
): Promise<T> {
  let pauseMs = backoff.firstMs;
  for (let tries = 0; ; tries++) {
    try {
      return await work(tries);
    } catch (error) {
      if (signal?.aborted || tries + 1 >= maxTries || !isTransient(error)) throw error;
      await delay(pauseMs * spread(backoff), undefined, { signal }).catch(() => undefined);
      pauseMs = Math.min(2 * pauseMs, backoff.maxMs);
    }
  }
}

/** Growing pauses are random, so that thousands of readers do not try at the same time. */
const spread = ({ firstMs, maxMs }: Backoff): number => (maxMs > firstMs ? 0.5 + Math.random() / 2 : 1);
