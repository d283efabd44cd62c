/** Target for the longest batch, in milliseconds. Statements of callers may wait this long behind a batch. */
const GOAL_MS = 50;

/**
 * How many rows the next batch may delete. The sizes of rows differ by a factor of a million. So the number follows from
 * the time that the last batches took.
 */
export class BatchSize {
  private size: number;

  constructor(private readonly max: number) {
    this.size = Math.ceil(max / 8);
  }

  get current(): number {
    return this.size;
  }

  /** Adapts the size of the next batch. @param milliseconds the duration of a batch of the current size */
  adaptTo(milliseconds: number): void {
    const factor = Math.min(2, GOAL_MS / Math.max(milliseconds, 1));
    this.size = Math.max(1, Math.min(this.max, Math.floor(this.size * factor)));
  }
}
