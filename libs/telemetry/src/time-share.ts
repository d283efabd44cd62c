/** A share of the time. A holder that uses a millisecond must rest until `1 / share` ms have passed, after a first burst. */
export class TimeShare {
  /** When the rest for all use is over, by `performance.now()`. */
  private paidAt = 0;

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
    return this.paidAt - performance.now() - this.burstMs / this.share;
  }

  get isPaid(): boolean {
    return this.paidAt <= performance.now();
  }

  /** The holder has used the time of the last `ms`. */
  use(ms: number): void {
    this.paidAt = Math.max(this.paidAt, performance.now() - ms) + ms / this.share;
  }
}
