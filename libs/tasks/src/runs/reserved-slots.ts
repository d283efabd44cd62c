import { Environment } from '@baton/config';
import type { WorkerRank } from '@baton/database';
import { Injectable } from '@nestjs/common';

/** With fewer slots in total, none is reserved: one of three would be too much of the capacity. */
const LEAST_SLOTS = 4;

/**
 * The slots of this worker that stay free for tenants without a run in flight. The workers share the reserve by their order of age:
 * the answer to each heartbeat has the number of slots of the other workers (docs/inside/adr/0005-fair-dispatch.md).
 */
@Injectable()
export class ReservedSlots {
  private readonly percent: number;
  private readonly own: number;
  private listener: ((count: number) => void) | undefined;
  /** Until the first heartbeat, as if this worker were alone. */
  private current: number;

  constructor({ reservedSlotsPercent, workerConcurrency }: Environment) {
    this.percent = reservedSlotsPercent;
    this.own = workerConcurrency;
    this.current = this.shareOf({ otherSlots: 0, elderSlots: 0 });
  }

  get count(): number {
    return this.current;
  }

  /** Set the one listener. It is called with the present number at once, and then on every change. */
  onChange(listener: (count: number) => void): void {
    this.listener = listener;
    listener(this.current);
  }

  /** Compute the share of this worker again. */
  shareWith(others: Pick<WorkerRank, 'otherSlots' | 'elderSlots'>): void {
    const count = this.shareOf(others);
    if (count === this.current) return;
    this.current = count;
    this.listener?.(count);
  }

  /** The shares of all workers add up to the reserve. The eldest has the first reserved slot. */
  private shareOf({ otherSlots, elderSlots }: Pick<WorkerRank, 'otherSlots' | 'elderSlots'>): number {
    const all = this.own + otherSlots;
    if (this.percent === 0 || all < LEAST_SLOTS) return 0;
    const reserve = Math.max(1, Math.floor((all * this.percent) / 100));
    const upTo = (slots: number): number => Math.ceil((reserve * slots) / all);
    return upTo(elderSlots + this.own) - upTo(elderSlots);
  }
}
