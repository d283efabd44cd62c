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

/** A tenant with runs that wait. */
export interface Claimant {
  tenantId: string;
  /** Share of the dispatch slots where tenants compete, above 0. */
  weight: number;
  /** Runs in flight: on the queue or running. */
  inFlight: number;
  /** Maximum number of runs in flight; null = any number. */
  maxInFlight: number | null;
}

/**
 * Shares free dispatch slots out: each goes to the tenant that would then have least for its weight. Over time this is
 * the weighted max-min share: no tenant gets more while another that wants some has less for its weight, and no slot
 * stays free while somebody may use it.
 *
 * @param random from 0 to below 1; says who is first among equals, so that no process always prefers the same ones
 * @returns slots by tenant, for those who get some
 */
export function shareOut(
  slots: number,
  claimants: readonly Claimant[],
  random: () => number = Math.random,
): Map<string, number> {
  const entries: Entry[] = claimants.map((claimant) => ({ claimant, got: 0, tie: random() }));
  const granted = new Map<string, number>();
  for (let left = slots; left > 0; left--) {
    const next = neediest(entries);
    if (!next) break;
    next.got += 1;
    next.tie = random();
    granted.set(next.claimant.tenantId, next.got);
  }
  return granted;
}

interface Entry {
  claimant: Claimant;
  got: number;
  tie: number;
}

/** What the tenant would have for its weight with one slot more; infinite if it may not have it. */
function burden({ claimant: { inFlight, maxInFlight, weight }, got }: Entry): number {
  const next = inFlight + got + 1;
  return maxInFlight !== null && next > maxInFlight ? Infinity : next / weight;
}

function neediest(entries: readonly Entry[]): Entry | undefined {
  let best: Entry | undefined;
  let least = Infinity;
  for (const entry of entries) {
    const own = burden(entry);
    if (own === Infinity || own > least || (own === least && best && entry.tie >= best.tie)) continue;
    best = entry;
    least = own;
  }
  return best;
}
