import { setTimeout as delay } from 'node:timers/promises';

/** How long a turn that was canceled waits for the id of the remote task, which can't be canceled without. */
const LEARN_MS = 1_500;

/** Ends the calls of a turn: when the run is stopped, or when the turn takes too long. */
export class TurnStop {
  /** The turn took longer than its settings allow. */
  timedOut = false;
  private readonly controller = new AbortController();
  private readonly timer: NodeJS.Timeout;
  private learning: NodeJS.Timeout | undefined;
  private tellable = false;

  constructor(
    private readonly run: AbortSignal,
    timeoutMs: number,
  ) {
    this.timer = setTimeout(() => {
      this.timedOut = true;
      this.controller.abort();
    }, timeoutMs).unref();
    if (run.aborted) this.controller.abort();
    else run.addEventListener('abort', this.onAbort, { once: true });
  }

  /** For the calls. */
  get signal(): AbortSignal {
    return this.controller.signal;
  }

  /** Whether the run was stopped: nobody hears what is said from now on. */
  get isAsked(): boolean {
    return this.run.aborted;
  }

  /** The remote agent can be told of a cancel from now on. */
  canTell(): void {
    this.tellable = true;
    if (this.run.aborted) this.controller.abort();
  }

  /** The turn is over. */
  clear(): void {
    clearTimeout(this.timer);
    clearTimeout(this.learning);
    this.run.removeEventListener('abort', this.onAbort);
    this.controller.abort();
  }

  private readonly onAbort = (): void => {
    if (this.tellable || this.run.reason !== 'canceled') this.controller.abort();
    else this.learning = setTimeout(() => this.controller.abort(), LEARN_MS);
  };
}

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
