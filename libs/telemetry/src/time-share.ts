/** A part of the time that a holder may use: it pays a millisecond of use with `1 / share` ms, and may be a burst ahead. */
export class TimeShare {
  /** When all use is paid, as `performance.now()`. */
  private paidAt = 0;

  /**
   * @param share from 0 to 1
   * @param burstMs use in ms that may be unpaid
   */
  constructor(
    private readonly share: number,
    private readonly burstMs: number,
  ) {}

  /** How long the holder must wait before its next use, in ms. Not positive: it need not wait. */
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
