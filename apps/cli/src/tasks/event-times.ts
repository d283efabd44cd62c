import { setTimeout as delay } from 'node:timers/promises';
import type { NumberedEvent } from '../call/agent-client.js';

/** Between two questions, in ms. Events of a fast stream come together meanwhile, and one question serves them all. */
const PAUSE_MS = 100;
/** After a question without an answer, in ms. */
const RETRY_MS = 1_000;

/** Reads times of the next events after a sequence. Undefined: the server knows none. */
type ReadTimes = (after: number) => Promise<ReadonlyMap<number, Date> | undefined>;

/**
 * When the events of one task were stored. A log never ends for want of a time: a question that fails leaves its
 * events without one.
 */
export class EventTimes {
  private known: ReadonlyMap<number, Date> | undefined = new Map();
  /** No question before this time, in ms since 1970. */
  private askAt = 0;
  private hasFailed = false;

  constructor(
    private readonly read: ReadTimes,
    private readonly clock: { now: () => number; sleep: (ms: number) => Promise<unknown> } = {
      now: () => Date.now(),
      sleep: (ms) => delay(ms),
    },
  ) {}

  /** Undefined: not known. */
  async of({ sequence = 0 }: NumberedEvent): Promise<Date | undefined> {
    if (this.known?.has(sequence) === false) await this.ask(sequence - 1);
    return this.known?.get(sequence);
  }

  private async ask(after: number): Promise<void> {
    const waitMs = this.askAt - this.clock.now();
    if (waitMs > 0 && this.hasFailed) return;
    if (waitMs > 0) await this.clock.sleep(waitMs);
    try {
      this.known = await this.read(after);
      this.hasFailed = false;
    } catch {
      // The stream of the log itself tells of a server that is away or refuses.
      this.hasFailed = true;
    }
    this.askAt = this.clock.now() + (this.hasFailed ? RETRY_MS : PAUSE_MS);
  }
}
