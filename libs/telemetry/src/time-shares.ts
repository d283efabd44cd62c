import { TimeShare } from './time-share.js';

/** The shares of time of several holders, by name. A holder that has rested for all its use is forgotten. */
export class TimeShares {
  private readonly active = new Map<string, TimeShare>();

  /** @param options of each `TimeShare` */
  constructor(private readonly options: { share: number; burstMs: number }) {}

  /** How long the holder must wait before its next use, in ms; 0: it need not wait. */
  waitMs(holder: string): number {
    return Math.max(0, this.active.get(holder)?.waitMs ?? 0);
  }

  /** The holder has used the time of the last `ms`. */
  use(holder: string, ms: number): void {
    for (const [each, { hasRested }] of this.active) if (hasRested) this.active.delete(each);
    const time = this.active.get(holder) ?? new TimeShare(this.options.share, this.options.burstMs);
    this.active.set(holder, time);
    time.use(ms);
  }
}
