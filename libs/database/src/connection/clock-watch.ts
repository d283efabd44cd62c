import { Environment } from '@baton/config';
import { clock, type ClockReading, gauge, Logger, Metrics } from '@baton/telemetry';
import { Injectable, type OnApplicationShutdown } from '@nestjs/common';
import { setTimeout as delay } from 'node:timers/promises';
import { Database } from './database.js';
import { DatabaseSetupError } from './database-setup-error.js';

const OFFSET = gauge(
  'baton_clock_offset_seconds',
  'Clock of this machine minus that of Postgres, as far as the time of the answer does not explain it',
);

/** Clocks with NTP differ by less. */
export const CLOCK_WARNING_MS = 2_000;
/** Clocks drift by less than a millisecond in this time. */
const READ_EVERY_MS = 10_000;
/** How often to check whether the clock has jumped, in ms. */
const LOOK_EVERY_MS = 1_000;
/** Readings of a comparison at most. The first one takes longer, because Postgres plans. The fastest is the most certain. */
const READINGS = 3;
/** A reading that takes no longer is certain enough. */
const CERTAIN_MS = 20;

/** Compares the clock of this machine with that of Postgres: at the start, every ten seconds, and when it has jumped. */
@Injectable()
export class ClockWatch implements OnApplicationShutdown {
  private readonly stopped = new AbortController();
  private isOff = false;

  constructor(
    private readonly database: Database,
    private readonly environment: Environment,
    private readonly logger: Logger,
    private readonly metrics: Metrics,
  ) {}

  /**
   * Rejects with `DatabaseSetupError` if the clocks differ by more than MAX_CLOCK_OFFSET_MS. If Postgres does not answer, it is
   * compared later.
   */
  async assertClose(): Promise<void> {
    await this.read();
    const { maxClockOffsetMs } = this.environment;
    if (Math.abs(clock.offsetMs) > maxClockOffsetMs) {
      throw new DatabaseSetupError(
        `The clock of this machine is ${differenceText(clock.offsetMs)} that of Postgres: let NTP set the clocks of both ` +
          `machines (chrony, systemd-timesyncd), or raise MAX_CLOCK_OFFSET_MS (${maxClockOffsetMs}).`,
      );
    }
  }

  /** Compares them from now on, until the process stops. */
  watch(): void {
    this.metrics.onScrape(async () => this.metrics.get(OFFSET).set({}, clock.offsetMs / 1000));
    void this.compare();
  }

  onApplicationShutdown(): void {
    this.stopped.abort();
  }

  /** The present fault of the clock, for `/readyz`. */
  get warning(): string | undefined {
    return isOff()
      ? `the clock of this machine is ${differenceText(clock.offsetMs)} that of Postgres`
      : undefined;
  }

  private async compare(): Promise<void> {
    const { signal } = this.stopped;
    let readAt = performance.now();
    for (;;) {
      try {
        await delay(LOOK_EVERY_MS, undefined, { ref: false, signal });
      } catch {
        // The process stops.
        return;
      }
      // The clock has jumped, or the machine has slept, so that its monotonic clock is late.
      const hasJumped = isOff() !== this.isOff;
      if (!hasJumped && performance.now() - readAt < READ_EVERY_MS) continue;
      await this.read();
      readAt = performance.now();
    }
  }

  /** One question at a time. */
  private async read(): Promise<void> {
    try {
      let best = await this.database.readClock();
      for (let i = 1; i < READINGS && durationOf(best) > CERTAIN_MS; i++) {
        const next = await this.database.readClock();
        if (durationOf(next) < durationOf(best)) best = next;
      }
      clock.adjust(best);
    } catch {
      // The checks of Postgres report an outage.
      return;
    }
    if (isOff() === this.isOff) return;
    this.isOff = isOff();
    if (!this.isOff)
      return void this.logger.info('the clock of this machine agrees with that of Postgres again');
    this.logger.warn('the clock of this machine is wrong: Baton uses that of Postgres', {
      offsetMs: Math.round(clock.offsetMs),
      remedy: 'let NTP set the clocks of both machines (chrony, systemd-timesyncd)',
    });
  }
}

const durationOf = ({ sentAt, receivedAt }: ClockReading): number => receivedAt - sentAt;

const isOff = (): boolean => Math.abs(clock.offsetMs) > CLOCK_WARNING_MS;

/** Such as `7200.0 s ahead of`. */
const differenceText = (offsetMs: number): string =>
  `${(Math.abs(offsetMs) / 1000).toFixed(1)} s ${offsetMs > 0 ? 'ahead of' : 'behind'}`;
