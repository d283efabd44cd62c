import { retryPause } from '@baton/telemetry';
import { setTimeout as delay } from 'node:timers/promises';

/** Pause before the second try. The pauses double. */
const FIRST_PAUSE_MS = 200;
/** An agent that restarts is found again within seconds. */
const MAX_PAUSE_MS = 5_000;

/** Exponential backoff with jitter and a timeout. */
export class RemoteBackoff {
  private tries = 0;
  private since = performance.now();

  /** @param timeoutMs maximum time of tries without success */
  constructor(
    private readonly timeoutMs: number,
    private readonly signal: AbortSignal,
  ) {}

  /** Restarts the timeout after a partial success. */
  restartTimeout(): void {
    this.since = performance.now();
  }

  /** Restarts timeout and pauses after a success. */
  reset(): void {
    this.tries = 0;
    this.restartTimeout();
  }

  /** How often `wait` was called since the last success. */
  get waits(): number {
    return this.tries;
  }

  /** Whether the timeout is over. */
  get isExpired(): boolean {
    return performance.now() - this.since >= this.timeoutMs;
  }

  /** Waits until the next try. Rejects when the signal aborts. */
  async wait(): Promise<void> {
    const pause = Math.min(FIRST_PAUSE_MS * 2 ** this.tries, MAX_PAUSE_MS);
    this.tries = Math.min(this.tries + 1, 16);
    await delay(retryPause(pause), undefined, { signal: this.signal });
  }
}
