import { z } from 'zod';

/**
 * What becomes of a run whose worker died or lost its lease: `restart` runs the turn again from its message, `none`
 * fails the task. An agent that throws is not retried: its task fails at once.
 */
export interface RetryPolicy {
  mode: 'restart' | 'none';
  /** How often the run is tried before its task fails, 1 to 100; left out = what the environment says. */
  attempts?: number;
  /** Pause before each new attempt; left out = none. */
  backoff?: RetryBackoff;
}

/** The pause before the first new attempt, how much longer each one after it is, and the longest, in ms. */
interface RetryBackoff {
  initialMs: number;
  factor: number;
  maxMs: number;
}

/** The policy of one run, fixed when it is accepted. */
export interface RunRetry {
  maxAttempts: number;
  backoff: RetryBackoff;
}

const DAY_MS = 86_400_000;
const NO_BACKOFF: RetryBackoff = { initialMs: 0, factor: 1, maxMs: 0 };

const backoff = z.strictObject({
  initialMs: z.int().min(1).max(DAY_MS),
  factor: z.number().min(1).max(100).default(2),
  maxMs: z.int().min(1).max(DAY_MS).default(60_000),
});

/** `retry` of an agent's definition. */
export const retryPolicy = z.discriminatedUnion('mode', [
  z.strictObject({ mode: z.literal('none') }),
  z.strictObject({
    mode: z.literal('restart'),
    attempts: z.int().min(1).max(100).optional(),
    backoff: backoff.optional(),
  }),
]);

/**
 * The policy for a run of an agent that declares this one.
 * @param defaultAttempts where the agent says nothing
 */
export function runRetry(policy: RetryPolicy | undefined, defaultAttempts: number): RunRetry {
  if (policy?.mode === 'none') return { maxAttempts: 1, backoff: NO_BACKOFF };
  return { maxAttempts: policy?.attempts ?? defaultAttempts, backoff: policy?.backoff ?? NO_BACKOFF };
}
