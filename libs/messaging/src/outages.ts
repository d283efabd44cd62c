import type { Logger } from '@baton/telemetry';

/** What messaging writes its troubles to. */
export type MessagingLog = Pick<Logger, 'info' | 'warn' | 'error'>;

const QUIET_MS = 10_000;

/**
 * Writes the same warning at most once in ten seconds: while a server is away, every connection reports it on
 * every try.
 */
export class QuietLog {
  private readonly lastAt = new Map<string, number>();

  constructor(private readonly log: MessagingLog) {}

  warn(message: string, error: unknown): void {
    const reason = reasonOf(error);
    const key = `${message}: ${reason}`;
    const now = Date.now();
    if (now - (this.lastAt.get(key) ?? -Infinity) < QUIET_MS) return;
    if (this.lastAt.size > 100) this.lastAt.clear();
    this.lastAt.set(key, now);
    this.log.warn(message, { reason });
  }

  info(message: string): void {
    this.log.info(message);
  }
}

/** Why it failed, in one line; connection errors of Node may have an empty message and only a code. */
export function reasonOf(error: unknown): string {
  if (error instanceof AggregateError && error.errors.length > 0) return reasonOf(error.errors[0]);
  if (!(error instanceof Error)) return String(error);
  return error.message || ('code' in error && String(error.code)) || error.name;
}

/**
 * Waits for `work`, but not longer than `ms`.
 * Rejects as `work` does, or with `reason` when the time is up (the work itself is not stopped).
 */
export async function within<T>(ms: number, work: Promise<T>, reason: string): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error(reason)), ms);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}
