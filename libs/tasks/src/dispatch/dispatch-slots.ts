import { type SlotUsage } from '@baton/database';

/** Runs on the queue beside the running ones, as a share of the slots. They bridge the time of a refill. */
const BACKLOG = 0.5;
/** Half of few slots would be too few runs to bridge a refill. */
const LEAST_BACKLOG = 4;
/** Age from which a read of Postgres is not used any more. */
const STALE_MS = 1_000;
/** How often to read free slots for eager starts. A start through the queue costs more than a read for some twenty. */
const EAGER_MS = 20;

/** Maximum runs in flight (on the queue or running) for `slots` concurrent runs. */
export const capacityOf = (slots: number): number =>
  slots + Math.max(LEAST_BACKLOG, Math.ceil(slots * BACKLOG));

/** Share of the reserved slots that one tenant may use, so that a burst leaves some to others. */
const SHARE_OF_RESERVE = 0.25;
/** Maximum of that, however many slots are reserved. */
const MAX_FEW = 4;

/**
 * Maximum runs of a tenant in flight for one of them to take a reserved slot. So a tenant that sends a few messages at once gets
 * reserved slots for all of them. With a maximum of one, its second run would wait behind those of a tenant that floods the queue.
 */
export const reserveUpTo = ({ reservedSlots }: Pick<SlotUsage, 'reservedSlots'>): number =>
  Math.min(Math.max(Math.floor(reservedSlots * SHARE_OF_RESERVE), 1), MAX_FEW);

/** Slots of workers that any run may take. */
export const ordinarySlots = ({
  workerSlots,
  reservedSlots,
}: Pick<SlotUsage, 'workerSlots' | 'reservedSlots'>): number => workerSlots - reservedSlots;

/**
 * The dispatch slots of one process, estimated between two reads of Postgres. New runs may take half of the free slots.
 * The other half is left to other processes, which have read them too.
 */
export class DispatchSlots {
  /** Slots of workers that any run may take. */
  private ordinary = 0;
  private reserved = 0;
  private workers: string[] = [];
  /**
   * New runs that may start eagerly: one for each slot of workers that is free. Other processes may take the same slots: a worker without
   * a free slot queues the run again.
   */
  private eagerStarts = 0;
  private lookedAt = -Infinity;
  private waiting: ReadonlySet<string> = new Set();
  private free = 0;
  private credit = 0;
  /** Fewer runs are in flight than the dispatch slots and the reserved slots. */
  private hasReserve = true;
  private isGuess = false;

  constructor(private readonly now: () => number = () => performance.now()) {}

  /** Takes over a read of Postgres. @param dispatched runs that were put on the queue after the read */
  update(seen: SlotUsage, dispatched: number): void {
    const { reservedSlots, workers, waiting } = seen;
    this.ordinary = ordinarySlots(seen);
    this.reserved = reservedSlots;
    this.workers = [...workers];
    this.waiting = new Set(waiting.keys());
    this.lookedAt = this.now();
    this.isGuess = false;
    this.setFree(Math.max(0, freeDispatchSlots(seen) - dispatched));
    this.hasReserve = freeReserve(seen) > dispatched;
  }

  /** Take a slot of a worker, after `take`. Undefined: none is known to be free. The workers take turns. */
  takeWorker(): string | undefined {
    if (this.eagerStarts === 0 || this.age > STALE_MS) return undefined;
    const worker = this.workers.shift();
    if (worker === undefined) return undefined;
    this.workers.push(worker);
    this.eagerStarts -= 1;
    return worker;
  }

  /** The worker does not answer: do not choose it again until the next read. */
  forget(worker: string): void {
    this.workers = this.workers.filter((id) => id !== worker);
  }

  /** Take a slot for a new run; false if none is known to be free. */
  take(): boolean {
    if (this.age > STALE_MS && !this.isGuess) this.guess();
    if (this.credit === 0) return false;
    this.credit -= 1;
    return true;
  }

  /** Milliseconds since the last read. */
  get age(): number {
    return this.now() - this.lookedAt;
  }

  /** This process has used half of its share, or has no eager start left. */
  get isRunningLow(): boolean {
    const isOut = this.eagerStarts === 0 && this.age > EAGER_MS;
    return this.free > 0 && (isOut || this.credit < this.free / 4);
  }

  /** Whether the end of a run of that tenant frees a slot for a waiting run. */
  isWantedBy(tenantId: string): boolean {
    return this.waiting.has(tenantId) || (this.free === 0 && this.waiting.size > 0);
  }

  get isFull(): boolean {
    return this.free === 0;
  }

  /** As in `RunQuota`, by the last read. */
  get reserveUpTo(): number {
    return reserveUpTo({ reservedSlots: this.reserved });
  }

  /** How many runs of a tenant may be in flight although no dispatch slot is free. */
  get withoutSlot(): number {
    return this.hasReserve ? this.reserveUpTo : 1;
  }

  /** Some live worker reserves slots. */
  get areReserved(): boolean {
    return this.reserved > 0;
  }

  /** Nothing happened here for long: until the next read, all slots count as free. */
  private guess(): void {
    this.isGuess = true;
    this.hasReserve = true;
    this.setFree(capacityOf(this.ordinary));
  }

  private setFree(count: number): void {
    this.free = count;
    this.credit = Math.ceil(count / 2);
    this.eagerStarts = Math.max(0, count - (capacityOf(this.ordinary) - this.ordinary));
  }
}

type Load = Pick<SlotUsage, 'workerSlots' | 'reservedSlots' | 'inFlight'>;

const inFlightOf = ({ inFlight }: Load): number =>
  [...inFlight.values()].reduce((sum, runs) => sum + runs, 0);

/** Dispatch slots that are free now. */
export const freeDispatchSlots = (seen: Load): number =>
  Math.max(0, capacityOf(ordinarySlots(seen)) - inFlightOf(seen));

/** How many runs of tenants with few in flight may be dispatched now, beyond the dispatch slots too. */
export const freeReserve = (seen: Load): number =>
  Math.max(0, capacityOf(ordinarySlots(seen)) + seen.reservedSlots - inFlightOf(seen));
