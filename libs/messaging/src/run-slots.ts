import { setImmediate as turnOfLoop } from 'node:timers/promises';
import type { RunHandler, RunJob } from './messaging.js';
import type { QuietLog } from './quiet-log.js';

/** How long a run waits for a slot of the worker that took its job. Then it goes back to the queue, for the others. */
const SLOT_WAIT_MS = 25;

/** The waiting list for slots: runs, and behind them held jobs. */
interface SlotQueue {
  runs: Set<() => void>;
  jobs: Set<() => void>;
}

const wakeOne = ([first]: Iterable<() => void>): void => first?.();

/** Whose runs they are, and whether they came by the queue of the reserved slots. */
type Right = Pick<RunJob, 'tenantId' | 'mayUseReserved'>;

/** One of the two queues, as the slots see it. */
export interface RunSource {
  /** Its runs may use reserved slots. */
  mayUseReserved: boolean;
  /** Puts runs back on this queue. */
  giveBack(runs: readonly RunJob[]): Promise<void>;
  /** Puts runs on the queue of ordinary runs. */
  giveToOrdinary(runs: readonly RunJob[]): Promise<void>;
}

/**
 * The runs that a worker executes at a time. A job is done when its runs are claimed, and each run then holds its slot until
 * it is over. While all slots are taken, the jobs that were taken last are held: so the worker takes no further ones. For
 * ordinary runs the reserved slots count as taken.
 *
 * Processes that accept runs of one tenant at the same moment may each give one of them the right to a reserved slot. So the worker
 * counts again: a run whose tenant has many runs here loses the right, and goes to the queue of ordinary runs.
 */
export class RunSlots {
  private readonly running = new Set<Promise<void>>();
  private readonly waiting: { reserved: SlotQueue; ordinary: SlotQueue } = {
    reserved: { runs: new Set(), jobs: new Set() },
    ordinary: { runs: new Set(), jobs: new Set() },
  };
  /** Which queue is first in line for the next free slot. They take turns, so that neither starves. */
  private turns = [this.waiting.reserved, this.waiting.ordinary];
  private reserved = 0;
  /** A tenant with so many runs here gets no further reserved slot. */
  private perTenant = Infinity;
  private readonly runsOf = new Map<string, number>();
  private isClosed = false;

  constructor(
    readonly count: number,
    private readonly execute: RunHandler,
    private readonly log: QuietLog,
  ) {}

  /** Resolves when the runs of a job are claimed or back on a queue, and the worker may take another job. */
  async deliver(runs: readonly RunJob[], source: RunSource): Promise<void> {
    const { mayUseReserved } = source;
    const { runs: waitingRuns, jobs: waitingJobs } = this.waiting[mayUseReserved ? 'reserved' : 'ordinary'];
    const claims: Promise<void>[] = [];
    const ordinary: RunJob[] = [];
    for (const run of runs) {
      const right = { tenantId: run.tenantId, mayUseReserved };
      const isOrdinary = (): boolean => mayUseReserved && !this.mayUseReserved(right);
      while (this.isFull(right) && !isOrdinary() && (await this.change(waitingRuns, SLOT_WAIT_MS)));
      // From here to `begin` nothing waits: another job would take the same slot.
      if (this.isClosed) break;
      if (!this.isFull(right)) claims.push(this.begin(run));
      else if (isOrdinary()) ordinary.push(run);
      else break;
    }
    const rest = runs.slice(claims.length + ordinary.length);
    // As new jobs with new ids: the present job keeps its id until it ends.
    if (ordinary.length > 0) await source.giveToOrdinary(ordinary);
    if (rest.length > 0) await source.giveBack(rest);
    await Promise.all(claims);
    // No caller waits for the end of a job, which takes a millisecond. So the runs write their first events first.
    await turnOfLoop();
    await turnOfLoop();
    while (this.isTaken(mayUseReserved) && !this.isClosed) await this.change(waitingJobs);
  }

  /** Executes a run that did not come by the queue. @returns false: no slot is free for it */
  tryStart(run: Right, execute: () => Promise<void>): boolean {
    if (this.isFull(run) || this.isClosed) return false;
    void this.occupy(run.tenantId, execute());
    return true;
  }

  /**
   * How many slots only the runs of the second queue may take.
   * @param perTenant a tenant with so many runs here gets no further one of them
   */
  reserve(slots: number, perTenant: number): void {
    this.reserved = slots;
    this.perTenant = perTenant;
    this.wakeAll();
  }

  /** Begin no more runs. */
  close(): void {
    this.isClosed = true;
    this.wakeAll();
  }

  /** Resolves when all runs are over. */
  async over(): Promise<void> {
    await Promise.all(this.running);
  }

  /** No slot is free for the run. */
  private isFull(run: Right): boolean {
    return this.isTaken(this.mayUseReserved(run));
  }

  private mayUseReserved({ tenantId, mayUseReserved = false }: Right): boolean {
    return mayUseReserved && (this.runsOf.get(tenantId) ?? 0) < this.perTenant;
  }

  private isTaken(withReserved: boolean): boolean {
    return this.running.size >= this.count - (withReserved ? 0 : this.reserved);
  }

  /** Resolves when the run is claimed or over. */
  private begin(run: RunJob): Promise<void> {
    return new Promise((claimed) => {
      void this.occupy(run.tenantId, this.execute(run, claimed)).then(claimed);
    });
  }

  /** A slot is taken until the run is over. Never rejects. */
  private occupy(tenantId: string, run: Promise<void>): Promise<void> {
    const over = run
      // BullMQ must not see the error: Postgres decides whether a run failed, and its lease brings it back.
      .catch((error: unknown) => this.log.warn('job dropped', error))
      .then(() => {
        this.running.delete(over);
        this.note(tenantId, -1);
        this.wakeNext();
      });
    this.running.add(over);
    this.note(tenantId, 1);
    return over;
  }

  /** Runs of a tenant have begun or ended. */
  private note(tenantId: string, change: number): void {
    const runs = (this.runsOf.get(tenantId) ?? 0) + change;
    if (runs > 0) this.runsOf.set(tenantId, runs);
    else this.runsOf.delete(tenantId);
  }

  /**
   * A slot is free. A waiting run takes it. If none waits, a held job of each queue is done: the one of a queue that is empty now
   * would leave the slot unused.
   */
  private wakeNext(): void {
    const usable = this.isTaken(false) ? [this.waiting.reserved] : this.turns;
    const next = usable.find(({ runs }) => runs.size > 0);
    if (!next) {
      for (const { jobs } of usable) wakeOne(jobs);
      return;
    }
    this.turns = this.turns.toSorted((a, b) => Number(a === next) - Number(b === next));
    wakeOne(next.runs);
  }

  private wakeAll(): void {
    const { reserved, ordinary } = this.waiting;
    for (const waiting of [reserved.runs, ordinary.runs, reserved.jobs, ordinary.jobs]) {
      for (const wake of waiting) wake();
    }
  }

  /** Waits for a free slot, or for the end. @returns false when the time is up */
  private change(waiting: Set<() => void>, ms?: number): Promise<boolean> {
    return new Promise((resolve) => {
      const done = (isInTime: boolean): void => {
        clearTimeout(timer);
        waiting.delete(wake);
        resolve(isInTime && !this.isClosed);
      };
      const wake = (): void => done(true);
      const timer = ms === undefined ? undefined : setTimeout(() => done(false), ms);
      waiting.add(wake);
      if (this.isClosed) wake();
    });
  }
}
