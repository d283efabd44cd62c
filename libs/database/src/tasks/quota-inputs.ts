import type { Inputs } from '../sql/statement.js';
import type { RunQuota } from './task-records.js';
import type { RunRetry } from '@baton/a2a';
import { retryPolicy } from './retry-policy.js';

/** The quota of one new run, and its retry policy. */
export const QUOTA = {
  max_in_flight: ['int', ({ quota }) => quota?.maxInFlight],
  max_waiting: ['int', ({ quota }) => quota?.maxWaiting],
  reserve_up_to: ['int', ({ quota }) => quota?.reserveUpTo ?? 1],
  retry: ['float8[]', ({ retry }) => retryPolicy(retry)],
} satisfies Inputs<{ quota?: RunQuota | undefined; retry?: RunRetry | undefined }>;
