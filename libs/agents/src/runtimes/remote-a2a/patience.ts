import { setTimeout as delay } from 'node:timers/promises';

const FIRST_MS = 200;
const LONGEST_MS = 5_000;

/** Waits longer and longer between tries; never as long as others that began at the same time. */
export class Patience {
  private waits = 0;
  private since = performance.now();

  /** @param totalMs how long tries may go on without success */
  constructor(
    private readonly totalMs: number,
    private readonly signal: AbortSignal,
  ) {}

  /** There was an answer, be it not the whole: tries may go on for as long again. */
  beginAnew(): void {
    this.since = performance.now();
  }

  /** A try was worth it: the next wait is short. */
  renew(): void {
    this.waits = 0;
    this.beginAnew();
  }

  get isOver(): boolean {
    return performance.now() - this.since >= this.totalMs;
  }

  /** Until the next try. Rejects when the signal aborts. */
  async wait(): Promise<void> {
    const longest = Math.min(FIRST_MS * 2 ** this.waits, LONGEST_MS);
    this.waits = Math.min(this.waits + 1, 16);
    await delay(longest * (0.5 + Math.random() / 2), undefined, { signal: this.signal });
  }
}
