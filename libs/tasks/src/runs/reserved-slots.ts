import { Environment } from '@baton/config';
import type { WorkerRank } from '@baton/database';
import { Injectable } from '@nestjs/common';
import { isDeepStrictEqual } from 'node:util';
import { reserveUpTo } from '../dispatch/dispatch-slots.js';

/** The slots of a worker that stay free. */
export interface WorkerReserve {
  slots: number;
  /** A tenant with so many runs in the worker gets no further one of the slots. */
  perTenant: number;
}

/**
 * A run that has just ended holds its slot for some milliseconds more. So a tenant that sends one task after another may have twice as
 * many runs in a worker as in flight.
 */
const STILL_ENDING = 2;

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
  private listener: ((reserve: WorkerReserve) => void) | undefined;
  /** Until the first heartbeat, as if this worker were alone. */
  private current: WorkerReserve;

  constructor({ reservedSlotsPercent, workerConcurrency }: Environment) {
    this.percent = reservedSlotsPercent;
    this.own = workerConcurrency;
    this.current = this.shareOf({ otherSlots: 0, elderSlots: 0 });
  }

  get count(): number {
    return this.current.slots;
  }

  /** Set the one listener. It is called with the present reserve at once, and then on every change. */
  onChange(listener: (reserve: WorkerReserve) => void): void {
    this.listener = listener;
    listener(this.current);
  }

  /** Compute the share of this worker again. */
  shareWith(others: Pick<WorkerRank, 'otherSlots' | 'elderSlots'>): void {
    const reserve = this.shareOf(others);
    if (isDeepStrictEqual(reserve, this.current)) return;
    this.current = reserve;
    this.listener?.(reserve);
  }

  /** The shares of all workers add up to the reserve. The eldest has the first reserved slot. */
  private shareOf({ otherSlots, elderSlots }: Pick<WorkerRank, 'otherSlots' | 'elderSlots'>): WorkerReserve {
    const all = this.own + otherSlots;
    const isNone = this.percent === 0 || all < LEAST_SLOTS;
    const reservedSlots = isNone ? 0 : Math.max(1, Math.floor((all * this.percent) / 100));
    const upTo = (slots: number): number => Math.ceil((reservedSlots * slots) / all);
    return {
      slots: upTo(elderSlots + this.own) - upTo(elderSlots),
      perTenant: STILL_ENDING * reserveUpTo({ reservedSlots }),
    };
  }
}
