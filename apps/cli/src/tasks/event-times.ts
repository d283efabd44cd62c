import { setTimeout as delay } from 'node:timers/promises';
import type { NumberedEvent } from '../call/agent-client.js';

/** Pause between two requests for times, in ms. One request then serves all events of a fast stream that came meanwhile. */
const PAUSE_MS = 100;
/** Pause after a request that has failed, in ms. */
const RETRY_MS = 1_000;

/** Reads the times of the next events after a sequence, by their sequence. Undefined: the server stores no times. */
type ReadTimes = (after: number) => Promise<ReadonlyMap<number, Date> | undefined>;

/**
 * The times when the events of one task were stored. If a request for times fails, its events are shown without a time, and the log goes
 * on.
 */
export class EventTimes {
  private known: ReadonlyMap<number, Date> | undefined = new Map();
  /** No request before this time, in ms since 1970. */
  private askAt = 0;
  private hasFailed = false;

  constructor(
    private readonly read: ReadTimes,
    private readonly clock: { now: () => number; sleep: (ms: number) => Promise<unknown> } = {
      now: () => Date.now(),
      sleep: (ms) => delay(ms),
    },
  ) {}

  /** The time when the event was stored. Undefined: unknown. */
  async timeOf({ sequence = 0 }: NumberedEvent): Promise<Date | undefined> {
    if (this.known?.has(sequence) === false) await this.readTimes(sequence - 1);
    return this.known?.get(sequence);
  }

  private async readTimes(after: number): Promise<void> {
    const waitMs = this.askAt - this.clock.now();
    if (waitMs > 0 && this.hasFailed) return;
    if (waitMs > 0) await this.clock.sleep(waitMs);
    try {
      this.known = await this.read(after);
      this.hasFailed = false;
    } catch {
      // The stream of events reports a server that is away or refuses.
      this.hasFailed = true;
    }
    this.askAt = this.clock.now() + (this.hasFailed ? RETRY_MS : PAUSE_MS);
  }
}
