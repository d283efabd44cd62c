/** How long a batch should take at most, in milliseconds: callers' statements never wait longer behind it. */
const GOAL_MS = 50;

/**
 * How many rows the next batch may delete. Rows differ by a factor of a million in size, so it follows how long
 * the last ones took.
 */
export class BatchSize {
  private size: number;

  constructor(private readonly max: number) {
    this.size = Math.ceil(max / 8);
  }

  get current(): number {
    return this.size;
  }

  /** A batch of the current size has taken that many milliseconds. */
  took(milliseconds: number): void {
    const factor = Math.min(2, GOAL_MS / Math.max(milliseconds, 1));
    this.size = Math.max(1, Math.min(this.max, Math.floor(this.size * factor)));
  }
}
