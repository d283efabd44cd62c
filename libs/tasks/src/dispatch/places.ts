import type { Occupancy } from '@baton/database';

/** Runs on the queue beyond those that are executed, as a share of the slots: they bridge the time of a refill. */
const RESERVE = 0.5;
const LEAST_RESERVE = 4;
/** A look older than this says nothing any more. */
const STALE_MS = 1_000;

/** Most runs that may be out, on the queue or running, where `slots` can be executed at once. */
export const capacityOf = (slots: number): number =>
  slots + Math.max(LEAST_RESERVE, Math.ceil(slots * RESERVE));

/**
 * What one process knows of the workers' places from one look at Postgres to the next. New runs may take half of
 * the places that were free; the other half is left to the other processes, which have looked as well.
 */
export class Places {
  private slots = 0;
  private lookedAt = -Infinity;
  private waiting: ReadonlySet<string> = new Set();
  private free = 0;
  private credit = 0;
  private isGuess = false;

  constructor(private readonly now: () => number = () => performance.now()) {}

  /** Take the look in. @param dispatched runs that were put on the queue after it */
  update({ slots, out, waiting }: Occupancy, dispatched: number): void {
    this.slots = slots;
    this.waiting = new Set(waiting.keys());
    this.lookedAt = this.now();
    this.isGuess = false;
    this.setFree(Math.max(0, freePlaces({ slots, out }) - dispatched));
  }

  /** Take a place for a new run; false if none is known to be free. */
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

  /** Whether the end of a run of that tenant makes a place for one that waits. */
  isWantedBy(tenantId: string): boolean {
    return this.waiting.has(tenantId) || (this.free === 0 && this.waiting.size > 0);
  }

  get isFull(): boolean {
    return this.free === 0;
  }

  /** Nothing happened here for long: all places are taken for free, once, until the next look. */
  private guess(): void {
    this.isGuess = true;
    this.setFree(capacityOf(this.slots));
  }

  private setFree(places: number): void {
    this.free = places;
    this.credit = Math.ceil(places / 2);
  }
}

/** Places where a run could be put now. */
export function freePlaces({ slots, out }: Pick<Occupancy, 'slots' | 'out'>): number {
  const taken = [...out.values()].reduce((sum, runs) => sum + runs, 0);
  return Math.max(0, capacityOf(slots) - taken);
}
