import { Environment } from '@baton/config';
import { type DueSchedule, ScheduleStore } from '@baton/database';
import { type Consumer, Messaging, type Tick } from '@baton/messaging';
import { Logger } from '@baton/telemetry';
import { Injectable } from '@nestjs/common';
import { SweepLeader } from '../core/sweep-leader.js';
import { RepeatedWork } from '../core/repeated-work.js';
import { ScheduleAdvancer } from './schedule-advancer.js';
import { ticksOf } from './ticks.js';

/** A schedule that is overdue for this long is fired without a tick of the queue. */
const OVERDUE_MS = 500;
/** Maximum number of schedules that one worker fires at a time. */
const AT_ONCE = 16;

/**
 * Fires schedules on time while the worker lives. A tick of the queue starts the search. Postgres decides what is due. If the queue
 * has lost a schedule, the sweep of any worker finds it a little later and sets its ticks again.
 */
@Injectable()
export class ScheduleClock extends RepeatedWork {
  private consumer: Consumer | undefined;

  constructor(
    private readonly store: ScheduleStore,
    private readonly advancer: ScheduleAdvancer,
    private readonly messaging: Messaging,
    private readonly environment: Environment,
    leader: SweepLeader,
    private readonly logger: Logger,
  ) {
    super({ log: { name: 'The sweep of schedules', logger } });
    leader.on('dueSchedules', () => this.wake());
  }

  override onApplicationBootstrap(): void {
    super.onApplicationBootstrap();
    this.consumer = this.messaging.consumeTicks((tick) => this.take(tick));
  }

  override async onModuleDestroy(): Promise<void> {
    await Promise.all([super.onModuleDestroy(), this.consumer?.close()]);
  }

  /** Fire overdue schedules until there is none, or one fails. Rejects when Postgres is away. */
  async runOnce(): Promise<void> {
    for (let goesOn = true; goesOn && !this.signal.aborted;) {
      const found = await this.store.takeDue(this.environment.leaseMs, OVERDUE_MS, AT_ONCE);
      const advanced = await Promise.all(found.map((due) => this.advanceLate(due)));
      goesOn = found.length > 0 && advanced.every(Boolean);
    }
  }

  /** @returns false: it failed, and is left to the next sweep */
  private async advanceLate(due: DueSchedule): Promise<boolean> {
    const { tenantId, id } = due.schedule;
    try {
      if (await this.advancer.advance(due)) this.remind(due);
      return true;
    } catch (error) {
      this.logger.warn('schedule could not be advanced; the next sweep advances it', {
        err: error,
        tenantId,
        scheduleId: id,
      });
      return false;
    }
  }

  /** Handle a tick of the queue. Never rejects. */
  async take({ tenantId, scheduleId: id, dueAt }: Tick): Promise<void> {
    try {
      const due = await this.store.takeOne({ tenantId, id }, dueAt, this.environment.leaseMs);
      const nextAt = due ? await this.advancer.advance(due) : (await this.store.find(tenantId, id))?.nextAt;
      // A deleted schedule, or a schedule without a next time, needs no ticks.
      if (nextAt === null || (!due && !nextAt)) await this.messaging.stopTicks(id);
    } catch (error) {
      this.logger.warn('tick of a schedule was not stored; the sweep fires the schedule', {
        err: error,
        tenantId,
        scheduleId: id,
      });
    }
  }

  /**
   * Set the ticks again. The queue was emptied, or it was away when the schedule was created. Not awaited: a queue that is
   * away must not delay the next schedules. Without ticks the sweep continues to fire the schedule.
   */
  private remind({ schedule }: DueSchedule): void {
    this.messaging.setTicks(ticksOf(schedule)).catch(() => undefined);
  }
}
