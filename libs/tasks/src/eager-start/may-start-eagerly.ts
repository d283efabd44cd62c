import type { RunRetry } from '@baton/a2a';

/** A run with fewer attempts goes through the queue: a lost message costs an attempt. */
const MIN_ATTEMPTS = 3;

/**
 * Whether the run of a new task may start eagerly. An agent that must not be tried again, or only after a pause, is not
 * charged with an attempt that it did not begin. A task with an alias, a parent or a push config has a transaction of its own,
 * which claims nothing.
 */
export const mayStartEagerly = (
  { alias, child, push }: { alias?: unknown; child?: unknown; push?: unknown },
  { maxAttempts, backoff }: RunRetry,
): boolean => !alias && !child && !push && maxAttempts >= MIN_ATTEMPTS && backoff.initialMs === 0;
