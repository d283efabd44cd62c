import { messageOf } from './message-of.js';
import type { Logger } from './logger.js';

/**
 * Logs failures of repeated work: once for each reason, and once when it works again. Postgres may be away for an hour.
 */
export class FailureLog {
  private readonly reasons = new Set<string>();
  private failures = 0;
  private since = 0;

  /** @param work its name at the beginning of a sentence */
  constructor(
    private readonly work: string,
    private readonly logger: Pick<Logger, 'warn' | 'info'>,
  ) {}

  failed(error: unknown): void {
    if (this.failures === 0) this.since = performance.now();
    this.failures += 1;
    const reason = messageOf(error);
    if (!this.reasons.has(reason)) this.logger.warn(`${this.work} fails`, { err: error });
    this.reasons.add(reason);
  }

  worked(): void {
    if (this.failures === 0) return;
    const forMs = Math.round(performance.now() - this.since);
    this.logger.info(`${this.work} works again`, { forMs, failures: this.failures });
    this.failures = 0;
    this.reasons.clear();
  }
}
