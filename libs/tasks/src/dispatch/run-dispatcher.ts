import { Environment, guestLimits } from '@baton/config';
import {
  DispatchStore,
  type Grant,
  GroupCommit,
  type RunKey,
  type RunQuota,
  RunStore,
  type SlotUsage,
} from '@baton/database';
import { LimitsService } from '@baton/identity';
import { Messaging, type RunJob } from '@baton/messaging';
import { untilStatementEnded } from '@baton/postgres';
import { FailureLog, Logger } from '@baton/telemetry';
import { Injectable, type OnApplicationBootstrap, type OnApplicationShutdown } from '@nestjs/common';
import { setTimeout as delay } from 'node:timers/promises';
import {
  capacityOf,
  DispatchSlots,
  freeDispatchSlots,
  freeReserve,
  ordinarySlots,
  reserveUpTo,
} from './dispatch-slots.js';
import { shareOut } from './share-out.js';

/** Maximum number of runs that one refill puts on the queue. */
const MAX_REFILL = 500;
/** Pause between two refills: one refill then serves all runs that ended meanwhile. */
const GAP_MS = 10;
/** How often to read while no run is known to wait. */
const CALM_MS = 100;
/** How often to read free slots while there is none. */
const FULL_MS = 250;
/** Runs that are put on the queue together. */
const MAX_ENQUEUED = 100;
/** The runs of all tenants. */
const ALL = '';

/**
 * Decides which runs may be on the queue. The queue delivers first come, first served. So it holds about as many runs
 * as the workers can execute, and a flood of one tenant cannot delay another tenant's task for long. The other runs
 * wait in Postgres. Free dispatch slots are shared by weight (docs/inside/adr/0005-fair-dispatch.md).
 */
@Injectable()
export class RunDispatcher implements OnApplicationBootstrap, OnApplicationShutdown {
  private readonly slots = new DispatchSlots();
  private filling = false;
  private asked = false;
  private timer: NodeJS.Timeout | undefined;
  private readonly stop = new AbortController();
  private readonly log: FailureLog;
  /** New runs that were accepted at the same moment. */
  private readonly accepted = new GroupCommit<RunJob, undefined>((runs) => this.enqueueAll(runs), {
    maxItems: MAX_ENQUEUED,
  });

  constructor(
    private readonly store: DispatchStore,
    private readonly runs: RunStore,
    private readonly limits: LimitsService,
    private readonly messaging: Messaging,
    private readonly environment: Environment,
    private readonly logger: Logger,
  ) {
    this.log = new FailureLog('The dispatch of waiting runs', logger);
  }

  onApplicationBootstrap(): void {
    this.refill();
  }

  onApplicationShutdown(): void {
    this.stop.abort();
    clearTimeout(this.timer);
  }

  /**
   * The quota of a new run. While no dispatch slot is free, a tenant with few runs in flight still gets one: its run
   * waits for the next worker slot, not for the tasks of others.
   * @param isGuest guests may use a share of the tenant's limits
   */
  async quotaFor(tenantId: string, isGuest = false): Promise<RunQuota> {
    const limits = await this.limits.get(tenantId);
    const { runsAtOnce, tasksWaiting, storedBytes: maxStoredBytes } = isGuest ? guestLimits(limits) : limits;
    const isFree = this.slots.take();
    if (this.slots.age > FULL_MS || this.slots.isRunningLow) this.refill();
    const exact = runsAtOnce !== null || tasksWaiting !== null;
    const { reserveUpTo, withoutSlot } = this.slots;
    return {
      maxInFlight: isFree ? runsAtOnce : Math.min(runsAtOnce ?? Infinity, withoutSlot),
      maxWaiting: tasksWaiting,
      reserveUpTo,
      maxStoredBytes,
      exact,
    };
  }

  /**
   * Put a new run on the queue if it has a dispatch slot. A waiting run is enqueued when a slot is free. Never rejects:
   * if the queue is away, the sweeper enqueues the run.
   */
  async enqueue(run: RunJob, dispatched: boolean): Promise<void> {
    if (!dispatched) {
      this.waited();
      return;
    }
    await this.accepted.submit(ALL, this.queued(run));
  }

  /** A worker with a free slot, which counts as taken from now on. Undefined: no slot is known to be free. */
  takeWorker(): string | undefined {
    return this.slots.takeWorker();
  }

  /** The worker does not receive runs: do not choose it again until the next read of its slots. */
  forgetWorker(workerId: string): void {
    this.slots.forget(workerId);
  }

  /** Put a claimed run on the queue, unless its attempt is over. This does not count as a crash. */
  async returnToQueue({ tenantId, taskId, runId, attempt }: RunKey): Promise<void> {
    const { reserveUpTo } = this.slots;
    const returned = await this.runs.returnToQueue({ tenantId, taskId, runId, attempt }, reserveUpTo);
    if (returned) await this.messaging.enqueueRuns([this.queued(returned)]);
  }

  /** While no live worker is known to reserve slots, all runs are put on one queue: workers of earlier releases have no other. */
  private queued(run: RunJob): RunJob {
    return this.slots.areReserved ? run : { ...run, mayUseReserved: false };
  }

  /** Never rejects. */
  private async enqueueAll(runs: readonly RunJob[]): Promise<undefined[]> {
    try {
      await this.messaging.enqueueNewRuns(runs);
    } catch (error) {
      for (const run of runs) {
        this.logger.warn('queue is away; the sweeper will enqueue the run', { err: error, ...run });
      }
    }
    return runs.map(() => undefined);
  }

  /** A new run had to wait: reads the free slots after a pause. */
  private waited(): void {
    this.timer ??= setTimeout(
      () => {
        this.timer = undefined;
        this.refill();
      },
      this.slots.isFull ? FULL_MS : GAP_MS,
    ).unref();
  }

  /** A run of the tenant is over: give its slot to a waiting run. */
  ended(tenantId: string): void {
    if (this.slots.isWantedBy(tenantId) || this.slots.age > CALM_MS) this.refill();
  }

  /** Fill the free slots. One refill at a time; calls during a refill cause one more. */
  refill(): void {
    this.asked = true;
    if (!this.filling) void this.fillUp();
  }

  private async fillUp(): Promise<void> {
    this.filling = true;
    try {
      for (let refills = 0; this.takeRequest(); refills++) {
        if (refills > 0) await delay(GAP_MS, undefined, { signal: this.stop.signal });
        await this.fillOnce();
        this.log.worked();
      }
    } catch (error) {
      // The next run that ends, or the sweeper, tries again.
      if (!this.stop.signal.aborted) {
        this.log.failed(error);
        await untilStatementEnded(error);
      }
    } finally {
      this.filling = false;
    }
  }

  private takeRequest(): boolean {
    const { asked } = this;
    this.asked = false;
    return asked && !this.stop.signal.aborted;
  }

  private async fillOnce(): Promise<void> {
    // A worker that was silent for two leases counts as dead. It has no slots.
    const seen = await this.store.readSlotUsage(this.environment.leaseMs * 2);
    const grants = this.grantsFor(seen);
    const granted = grants.reduce((sum, { slots }) => sum + slots, 0);
    const capacity = capacityOf(ordinarySlots(seen));
    const reserve = { upTo: reserveUpTo(seen), slots: seen.reservedSlots };
    const runs = granted > 0 ? await this.store.dispatch(grants, capacity, reserve) : [];
    this.slots.update(seen, runs.length);
    // Some tenants had fewer waiting runs than slots: the other slots go to other tenants.
    if (runs.length > 0 && runs.length < granted) this.asked = true;
    await this.messaging.enqueueNewRuns(runs.map((run) => this.queued(run)));
  }

  private grantsFor(seen: SlotUsage): Grant[] {
    const { runsAtOnce } = this.environment.defaultLimits;
    const claimants = [...seen.waiting].map(([tenantId, limits]) => ({
      tenantId,
      weight: limits.weight ?? 1,
      inFlight: seen.inFlight.get(tenantId) ?? 0,
      maxInFlight: limits.runsAtOnce === undefined ? runsAtOnce : limits.runsAtOnce,
    }));
    const few = freeReserve(seen) > 0 ? reserveUpTo(seen) : 1;
    const shares = shareOut(Math.min(freeDispatchSlots(seen), MAX_REFILL), claimants);
    return claimants.flatMap(({ tenantId, maxInFlight, inFlight }) => {
      // A tenant with few runs in flight gets some, as at acceptance: they may use reserved slots.
      const slots = Math.max(shares.get(tenantId) ?? 0, few - inFlight);
      return slots === 0 ? [] : [{ tenantId, slots, maxInFlight }];
    });
  }
}
