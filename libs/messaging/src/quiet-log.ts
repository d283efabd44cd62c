import type { Logger } from '@baton/telemetry';

/** Where messaging logs warnings. */
export type MessagingLog = Pick<Logger, 'info' | 'warn' | 'error'>;
/** An outage writes one line of a kind each ten seconds. */
const QUIET_MS = 10_000;

/**
 * Writes the same warning at most once in ten seconds: while a server is away, every connection reports it on
 * every try.
 */
export class QuietLog {
  private readonly lastAt = new Map<string, number>();

  constructor(private readonly log: MessagingLog) {}

  warn(message: string, error: unknown): void {
    const reason = connectionProblem(error);
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
export function connectionProblem(error: unknown): string {
  if (error instanceof AggregateError && error.errors.length > 0) return connectionProblem(error.errors[0]);
  if (!(error instanceof Error)) return String(error);
  return error.message || ('code' in error && String(error.code)) || error.name;
}
