import type { SlotUsage } from '@baton/database';

/** Runs on the queue beyond those that are executed, as a share of the worker slots: they bridge the time of a refill. */
const RESERVE = 0.5;
const LEAST_RESERVE = 4;
/** A look older than this says nothing any more. */
const STALE_MS = 1_000;

/** Most runs in flight, on the queue or running, where `workerSlots` can be executed at once. */
export const capacityOf = (workerSlots: number): number =>
  workerSlots + Math.max(LEAST_RESERVE, Math.ceil(workerSlots * RESERVE));

/**
 * What one process knows of the dispatch slots from one look at Postgres to the next. New runs may take half of
 * the slots that were free; the other half is left to the other processes, which have looked as well.
 */
export class DispatchSlots {
  private workerSlots = 0;
  private lookedAt = -Infinity;
  private waiting: ReadonlySet<string> = new Set();
  private free = 0;
  private credit = 0;
  private isGuess = false;

  constructor(private readonly now: () => number = () => performance.now()) {}

  /** Take the look in. @param dispatched runs that were put on the queue after it */
  update({ workerSlots, inFlight, waiting }: SlotUsage, dispatched: number): void {
    this.workerSlots = workerSlots;
    this.waiting = new Set(waiting.keys());
    this.lookedAt = this.now();
    this.isGuess = false;
    this.setFree(Math.max(0, freeDispatchSlots({ workerSlots, inFlight }) - dispatched));
  }

  /** Take a slot for a new run; false if none is known to be free. */
  take(): boolean {
    if (this.age > STALE_MS && !this.isGuess) this.guess();
    if (this.credit === 0) return false;
    this.credit -= 1;
    return true;
  }

  /** Milliseconds since the last look. */
  get age(): number {
    return this.now() - this.lookedAt;
  }

  /** Half of what this process may take is gone. */
  get isRunningLow(): boolean {
    return this.free > 0 && this.credit < this.free / 4;
  }

  /** Whether the end of a run of that tenant makes a slot for one that waits. */
  isWantedBy(tenantId: string): boolean {
    return this.waiting.has(tenantId) || (this.free === 0 && this.waiting.size > 0);
  }

  get isFull(): boolean {
    return this.free === 0;
  }

  /** Nothing happened here for long: all slots are taken for free, once, until the next look. */
  private guess(): void {
    this.isGuess = true;
    this.setFree(capacityOf(this.workerSlots));
  }

  private setFree(count: number): void {
    this.free = count;
    this.credit = Math.ceil(count / 2);
  }
}

/** Dispatch slots that are free now. */
export function freeDispatchSlots({
  workerSlots,
  inFlight,
}: Pick<SlotUsage, 'workerSlots' | 'inFlight'>): number {
  const taken = [...inFlight.values()].reduce((sum, runs) => sum + runs, 0);
  return Math.max(0, capacityOf(workerSlots) - taken);
}
