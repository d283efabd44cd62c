import { TimeShare } from './time-share.js';

/** The shares of time of several holders, by name. Those that have paid all their use are forgotten. */
export class TimeShares {
  private readonly unpaid = new Map<string, TimeShare>();

  /** @param options of each `TimeShare` */
  constructor(private readonly options: { share: number; burstMs: number }) {}

  /** How long the holder must wait before its next use, in ms; 0: it need not wait. */
  waitMs(holder: string): number {
    return Math.max(0, this.unpaid.get(holder)?.waitMs ?? 0);
  }

  /** The holder has used the time of the last `ms`. */
  use(holder: string, ms: number): void {
    for (const [each, { isPaid }] of this.unpaid) if (isPaid) this.unpaid.delete(each);
    const time = this.unpaid.get(holder) ?? new TimeShare(this.options.share, this.options.burstMs);
    this.unpaid.set(holder, time);
    time.use(ms);
  }
}
