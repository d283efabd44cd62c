/** For so long may the answers of one tenant be read in a turn of the event loop, in ms. The last one may take longer. */
const TURN_MS = 1;

/**
 * Turns of the event loop for the answers that a tenant's peers send: to read a part of one costs little on the wire and much here. The
 * parts come in turn, and the event loop serves everybody else before it goes on with the next ones.
 */
export class AnswerTurns {
  private readonly waiting: (() => void)[] = [];
  private beganAt: number | undefined;

  /** @param read runs when it is its turn. What it begins without a wait counts too. It must not throw */
  take(read: () => void): void {
    this.waiting.push(read);
    setImmediate(this.next);
  }

  private readonly next = (): void => {
    if (this.beganAt === undefined) {
      this.beganAt = performance.now();
      // Runs in the next turn, before the reads that this one leaves.
      setImmediate(() => (this.beganAt = undefined));
    }
    if (performance.now() - this.beganAt < TURN_MS) this.waiting.shift()?.();
    else setImmediate(this.next);
  };
}
