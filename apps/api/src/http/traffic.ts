import { Injectable } from '@nestjs/common';

/**
 * The requests this process is answering now. A shutdown stops taking new ones, waits for those in hand, and
 * when its patience is over has blocking calls answer with what they have.
 */
@Injectable()
export class Traffic {
  draining = false;
  private readonly calls = new Set<AbortController>();
  private inFlight = 0;
  private wake: (() => void) | undefined;

  /** A call that may block, and what makes it answer at once. */
  add(call: AbortController): void {
    this.calls.add(call);
  }

  remove(call: AbortController): void {
    this.calls.delete(call);
  }

  /** Number of requests in hand. */
  get inHand(): number {
    return this.inFlight;
  }

  began(): void {
    this.inFlight += 1;
  }

  ended(): void {
    this.inFlight -= 1;
    if (this.inFlight === 0) this.wake?.();
  }

  /** Wait at most `ms` until no request is in hand; tells whether that came about. */
  async idle(ms: number): Promise<boolean> {
    if (this.inFlight === 0) return true;
    let timer: NodeJS.Timeout | undefined;
    await new Promise<void>((resolve) => {
      this.wake = resolve;
      timer = setTimeout(resolve, ms);
    });
    clearTimeout(timer);
    return this.inFlight === 0;
  }

  /** Have the calls in hand answer at once. */
  hurry(): void {
    for (const call of this.calls) call.abort();
  }
}
