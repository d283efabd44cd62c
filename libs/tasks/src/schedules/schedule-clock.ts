import { Environment } from '@baton/config';
import { type DueSchedule, ScheduleStore } from '@baton/database';
import { type Consumer, Messaging, type Tick } from '@baton/messaging';
import { FailureLog, Logger } from '@baton/telemetry';
import { Injectable, type OnApplicationBootstrap, type OnModuleDestroy } from '@nestjs/common';
import { RepeatedWork } from '../core/repeated-work.js';
import { ScheduleSettler } from './schedule-settler.js';
import { ticksOf } from './ticks.js';

/** A schedule that the queue has said nothing of for so long is fired without it. */
const OVERDUE_MS = 500;
/** Schedules that one worker fires at a time. */
const AT_ONCE = 16;

/**
 * Fires schedules on time while the worker lives. The queue says when to look, Postgres what is due. What the queue
 * has forgotten, every worker finds by itself a little later; the queue is then told anew.
 */
@Injectable()
export class ScheduleClock implements OnApplicationBootstrap, OnModuleDestroy {
  private readonly repeated: RepeatedWork;
  private consumer: Consumer | undefined;

  constructor(
    private readonly store: ScheduleStore,
    private readonly settler: ScheduleSettler,
    private readonly messaging: Messaging,
    private readonly environment: Environment,
    private readonly logger: Logger,
  ) {
    this.repeated = new RepeatedWork({
      everyMs: environment.sweepMs,
      work: () => this.sweep(),
      log: new FailureLog('The sweep of schedules', logger),
    });
  }

  onApplicationBootstrap(): void {
    this.repeated.start();
    this.consumer = this.messaging.consumeTicks((tick) => this.take(tick));
  }

  async onModuleDestroy(): Promise<void> {
    await Promise.all([this.repeated.stop(), this.consumer?.close()]);
  }

  /** Fire what is due and overdue. Rejects when Postgres is away. */
  async sweep(): Promise<void> {
    for (let full = true; full && !this.repeated.signal.aborted;) {
      const found = await this.store.takeDue(this.environment.leaseMs, OVERDUE_MS, AT_ONCE);
      await Promise.all(found.map((due) => this.settleLate(due)));
      full = found.length === AT_ONCE;
    }
  }

  private async settleLate(due: DueSchedule): Promise<void> {
    const nextAt = await this.settler.settle(due).catch((error: unknown) => this.leave(error, due));
    if (nextAt) await this.remind(due);
  }

  /** The queue says that it is time. Never rejects. */
  async take({ tenantId, scheduleId: id, dueAt }: Tick): Promise<void> {
    try {
      const due = await this.store.takeOne({ tenantId, id }, dueAt, this.environment.leaseMs);
      const nextAt = due ? await this.settler.settle(due) : (await this.store.find(tenantId, id))?.nextAt;
      // What has no next time, or is gone, need not tick.
      if (nextAt === null || (!due && !nextAt)) await this.messaging.stopTicks(id);
    } catch (error) {
      this.logger.warn('tick of a schedule left to the sweep', { err: error, tenantId, scheduleId: id });
    }
  }

  /** The queue has said nothing: it has been emptied, or was away when the schedule was made. */
  private async remind({ schedule }: DueSchedule): Promise<void> {
    // Without the queue the sweep goes on firing it.
    await this.messaging.setTicks(ticksOf(schedule)).catch(() => undefined);
  }

  private leave(error: unknown, { schedule }: DueSchedule): undefined {
    const { tenantId, id } = schedule;
    this.logger.warn('schedule left to the next sweep', { err: error, tenantId, scheduleId: id });
  }
}
