import { within } from '@baton/telemetry';
import { Injectable } from '@nestjs/common';

/**
 * The requests that this process is answering. A shutdown takes no new ones and waits for those in flight. After the
 * grace time it makes blocking calls answer with what they have.
 */
@Injectable()
export class InFlightRequests {
  draining = false;
  private readonly calls = new Set<AbortController>();
  private inFlight = 0;
  private wake: (() => void) | undefined;

  /** Registers a call that may block. Aborting `call` makes it answer at once. */
  add(call: AbortController): void {
    this.calls.add(call);
  }

  remove(call: AbortController): void {
    this.calls.delete(call);
  }

  /** Number of requests in flight. */
  get count(): number {
    return this.inFlight;
  }

  began(): void {
    this.inFlight += 1;
  }

  ended(): void {
    this.inFlight -= 1;
    if (this.inFlight === 0) this.wake?.();
  }

  /** Waits at most `ms` until no request is in flight. Resolves with whether that happened. */
  async idle(ms: number): Promise<boolean> {
    if (this.inFlight === 0) return true;
    await within(new Promise<void>((resolve) => (this.wake = resolve)), ms);
    return this.inFlight === 0;
  }

  /** Makes all calls that block answer at once. */
  hurry(): void {
    for (const call of this.calls) call.abort();
  }
}
