import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from './logger.js';

/** The end of an outage is in the log a second later. */
const PROBE_MS = 1_000;

/**
 * Logs an outage of a service once at its beginning, and once at its end with the number of failed requests. Thousands
 * of callers may ask meanwhile.
 */
export class OutageLog {
  private readonly failed = new Map<string, number>();

  /** @param probeMs how often to check whether a service is back, in milliseconds */
  constructor(
    private readonly logger: Logger,
    private readonly probeMs = PROBE_MS,
  ) {}

  /**
   * A request failed because the service is away.
   * @param service its name at the beginning of a sentence
   * @param probe rejects as long as the service is away
   */
  requestFailed(service: string, error: unknown, probe: () => Promise<unknown>): void {
    const count = this.failed.get(service);
    this.failed.set(service, (count ?? 0) + 1);
    if (count !== undefined) return;
    this.logger.warn(`${service} is away: requests that need it fail`, { err: error });
    void this.awaitEnd(service, probe, performance.now());
  }

  private async awaitEnd(service: string, probe: () => Promise<unknown>, since: number): Promise<void> {
    do await delay(this.probeMs, undefined, { ref: false });
    while (!(await answers(probe)));
    const forMs = Math.round(performance.now() - since);
    this.logger.info(`${service} is back`, { forMs, failedRequests: this.failed.get(service) });
    this.failed.delete(service);
  }
}

const answers = (probe: () => Promise<unknown>): Promise<boolean> =>
  probe().then(
    () => true,
    () => false,
  );
