import type { RunRetry } from '@baton/a2a';

const THREE_TIMES: RunRetry = { maxAttempts: 3, backoff: { initialMs: 0, factor: 1, maxMs: 0 } };

/** The columns of the retry policy of a run. */
export const RETRY = 'max_attempts, backoff_ms, backoff_factor, backoff_max_ms';

/** The retry policy as one value, in the order of `RETRY`. */
export const retryPolicy = ({ maxAttempts, backoff }: RunRetry = THREE_TIMES): number[] => [
  maxAttempts,
  backoff.initialMs,
  backoff.factor,
  backoff.maxMs,
];

/** SQL of the columns of `RETRY`. @param policy SQL of a `retryPolicy` */
export const retryColumns = (policy: string): string =>
  [1, 2, 3, 4].map((i) => `(${policy})[${i}]`).join(', ');
