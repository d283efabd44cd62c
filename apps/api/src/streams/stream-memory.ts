/**
 * The memory of this process for events that wait for slow readers of streams. While there is enough, a stream may fill its
 * own buffer. If all is taken, a stream may hold an equal share of it, so that many slow readers need no more than a few.
 */
export class StreamMemory {
  private held = 0;
  private readers = 0;

  /** @param total in characters or bytes */
  constructor(private readonly total = Infinity) {}

  /** A stream begins. */
  join(): void {
    this.readers += 1;
  }

  /** A stream is over. */
  leave(): void {
    this.readers -= 1;
  }

  /** A stream holds this many bytes more, or less. */
  change(amount: number): void {
    this.held += amount;
  }

  /** Whether a stream that holds this many bytes must wait for its reader. */
  isFullFor(held: number): boolean {
    return this.held >= this.total && held >= this.total / this.readers;
  }
}
