import { Environment } from '@baton/config';
import { DispatchStore, type Grant, type SlotUsage, type RunQuota } from '@baton/database';
import { LimitsService } from '@baton/identity';
import { Messaging, type RunJob } from '@baton/messaging';
import { FailureLog, Logger } from '@baton/telemetry';
import { Injectable, type OnApplicationBootstrap, type OnApplicationShutdown } from '@nestjs/common';
import { setTimeout as delay } from 'node:timers/promises';
import { capacityOf, freeDispatchSlots, DispatchSlots } from './dispatch-slots.js';
import { shareOut } from './dispatch-slots.js';

/** Most runs that one refill puts on the queue, so that it stays short. */
const MAX_REFILL = 500;
/** Between two refills, so that what ends meanwhile is made up for by one. */
const GAP_MS = 10;
/** How often to look while nothing is known to wait. */
const CALM_MS = 100;
/** How often to look for slots while there are none. */
const FULL_MS = 250;

/**
 * Decides which runs may be on the queue. The queue delivers them first come, first served, so at most about as many
 * are on it as the workers can execute: then nobody's flood gets between another's task and the next free worker slot.
 * The others wait in Postgres. Dispatch slots that come free are shared out by weight (docs/inside/adr/0005-fair-dispatch.md).
 */
@Injectable()
export class RunDispatcher implements OnApplicationBootstrap, OnApplicationShutdown {
  private readonly slots = new DispatchSlots();
  private filling = false;
  private asked = false;
  private timer: NodeJS.Timeout | undefined;
  private readonly stop = new AbortController();
  private readonly log: FailureLog;

  constructor(
    private readonly store: DispatchStore,
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
   * What a new run of the tenant may take. While no dispatch slot is free, a tenant without any run in flight gets one
   * all the same: its run waits for the next worker slot and not for the tasks of others.
   */
  async quotaFor(tenantId: string): Promise<RunQuota> {
    const { runsAtOnce, tasksWaiting, storedBytes: maxStoredBytes } = await this.limits.of(tenantId);
    const isFree = this.slots.take();
    if (this.slots.age > FULL_MS || this.slots.isRunningLow) this.refill();
    const exact = runsAtOnce !== null || tasksWaiting !== null;
    return { maxInFlight: isFree ? runsAtOnce : 1, maxWaiting: tasksWaiting, maxStoredBytes, exact };
  }

  /**
   * A new run that has a dispatch slot goes on the queue; one that waits comes there when a slot is free. Never rejects:
   * what the queue does not take is enqueued by the sweeper.
   */
  async enqueue(run: RunJob, dispatched: boolean): Promise<void> {
    if (!dispatched) {
      this.waited();
      return;
    }
    try {
      await this.messaging.enqueueRuns([run]);
    } catch (error) {
      this.logger.warn('queue is away; the sweeper will enqueue the run', { err: error, ...run });
    }
  }

  /** A new run had to wait: look after a while whether there is a slot after all. */
  private waited(): void {
    this.timer ??= setTimeout(
      () => {
        this.timer = undefined;
        this.refill();
      },
      this.slots.isFull ? FULL_MS : GAP_MS,
    ).unref();
  }

  /** A run of the tenant is over: its slot is for one that waits. */
  ended(tenantId: string): void {
    if (this.slots.isWantedBy(tenantId) || this.slots.age > CALM_MS) this.refill();
  }

  /** Put on the queue what there is room for. One refill at a time; calls meanwhile make one more follow. */
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
      if (!this.stop.signal.aborted) this.log.failed(error);
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
    // A worker that was silent for two leases is as good as gone, and so are its slots.
    const seen = await this.store.readSlotUsage(this.environment.leaseMs * 2);
    const grants = this.grantsFor(seen);
    const granted = grants.reduce((sum, { slots }) => sum + slots, 0);
    const runs = granted > 0 ? await this.store.dispatch(grants, capacityOf(seen.workerSlots)) : [];
    this.slots.update(seen, runs.length);
    // Some tenants had fewer runs waiting than slots: those are for others.
    if (runs.length > 0 && runs.length < granted) this.asked = true;
    await this.messaging.enqueueRuns(runs);
  }

  private grantsFor(seen: SlotUsage): Grant[] {
    const { runsAtOnce } = this.environment.defaultLimits;
    const claimants = [...seen.waiting].map(([tenantId, limits]) => ({
      tenantId,
      weight: limits.weight ?? 1,
      inFlight: seen.inFlight.get(tenantId) ?? 0,
      maxInFlight: limits.runsAtOnce === undefined ? runsAtOnce : limits.runsAtOnce,
    }));
    const shares = shareOut(Math.min(freeDispatchSlots(seen), MAX_REFILL), claimants);
    return claimants.flatMap(({ tenantId, maxInFlight }) => {
      const slots = shares.get(tenantId);
      return slots === undefined ? [] : [{ tenantId, slots, maxInFlight }];
    });
  }
}
