/** A share of the time. A holder that uses a millisecond must rest until `1 / share` ms have passed, after a first burst. */
export class TimeShare {
  /** When the rest for all use so far ends, by `performance.now()`. */
  private restedAt = 0;

  /**
   * @param share from 0 to 1
   * @param burstMs use without a rest, in ms
   */
  constructor(
    private readonly share: number,
    private readonly burstMs: number,
  ) {}

  /** How long the holder must wait before its next use, in ms. 0 or less: it may use the time now. */
  get waitMs(): number {
    return this.restedAt - performance.now() - this.burstMs / this.share;
  }

  /** Whether the holder has rested for all its use. */
  get hasRested(): boolean {
    return this.restedAt <= performance.now();
  }

  /** The holder has used the time of the last `ms`. */
  use(ms: number): void {
    this.restedAt = Math.max(this.restedAt, performance.now() - ms) + ms / this.share;
  }
}
