import { ProtocolError } from '@baton/a2a';
import { Environment } from '@baton/config';
import {
  type DueSchedule,
  type FiringOutcome,
  type PassedTimes,
  type Schedule,
  ScheduleStore,
  isTransient,
} from '@baton/database';
import { counter, Logger, Metrics } from '@baton/telemetry';
import { Injectable } from '@nestjs/common';
import { nextFiring, planFiring } from './firing-plan.js';
import { ScheduleFiring, taskIdAt } from './schedule-firing.js';

const SCHEDULE_FIRINGS = counter(
  'baton_schedule_firings_total',
  'Times of schedules that have come, by outcome',
  ['outcome'],
  [{ outcome: 'started' }, { outcome: 'skipped' }, { outcome: 'missed' }, { outcome: 'refused' }],
);

interface FiringEnd {
  outcome: FiringOutcome;
  reason: string | null;
}

/**
 * Brings a due schedule to its next time. Postgres stores the decision about a time once. The task's id follows from
 * schedule and time. So a time makes one task, even if a worker dies in between or several workers take the schedule.
 */
@Injectable()
export class ScheduleAdvancer {
  constructor(
    private readonly store: ScheduleStore,
    private readonly firing: ScheduleFiring,
    private readonly metrics: Metrics,
    private readonly environment: Environment,
    private readonly logger: Logger,
  ) {}

  /**
   * Fire or skip the time that is due, and store the next one. A schedule that cannot be advanced is paused with its reason:
   * a further try would fail as well. Rejects when Postgres is away. A worker takes the schedule again when this worker's
   * lease of it has expired.
   * @returns the next time; null = there is none; undefined = the time has to wait, or another worker advances it
   */
  async advance(due: DueSchedule): Promise<Date | null | undefined> {
    try {
      return await this.tryAdvance(due);
    } catch (error) {
      if (isTransient(error)) throw error;
      await this.store.pause(due.schedule, this.reasonOf(error, due.schedule));
      return null;
    }
  }

  private async tryAdvance(due: DueSchedule): Promise<Date | null | undefined> {
    const { schedule } = due;
    const { scheduleLateMs: lateMs } = this.environment;
    const dueAt = schedule.pendingAt ?? schedule.nextAt;
    if (!dueAt) return null;
    if (schedule.pendingAt) return this.fire(due, dueAt);
    const plan = planFiring(due, dueAt, lateMs);
    if (plan.kind === 'wait') {
      await this.store.wait(schedule, plan.ms);
      return undefined;
    }
    if (plan.kind === 'pass') return this.note(due, dueAt, plan, null);
    const version = await this.store.begin(schedule);
    return version === undefined
      ? undefined
      : this.fire({ ...due, schedule: { ...schedule, version } }, dueAt);
  }

  private async fire(due: DueSchedule, dueAt: Date): Promise<Date | null | undefined> {
    const { schedule } = due;
    const taskId = taskIdAt(schedule, dueAt);
    try {
      await this.firing.fire(schedule, dueAt, taskId);
    } catch (error) {
      if (isTransient(error)) throw error;
      return this.note(due, dueAt, { outcome: 'refused', reason: this.reasonOf(error, schedule) }, null);
    }
    return this.note(due, dueAt, { outcome: 'started', reason: null }, taskId);
  }

  private async note(
    due: DueSchedule,
    dueAt: Date,
    { outcome, reason }: FiringEnd,
    taskId: string | null,
  ): Promise<Date | null | undefined> {
    const { tenantId, id } = due.schedule;
    const next = nextFiring(due, dueAt, this.environment.scheduleLateMs, outcome);
    if (!(await this.store.finish(due.schedule, { dueAt, outcome, reason, taskId, ...next })))
      return undefined;
    this.count(outcome, next.passed);
    const { passed, nextAt, pauseReason } = next;
    const fields = { tenantId, scheduleId: id, dueAt, outcome, passed, ...(reason !== null && { reason }) };
    this.logger[outcome === 'started' ? 'debug' : 'info']('schedule fired', fields);
    if (pauseReason !== null)
      this.logger.warn('schedule paused', { tenantId, scheduleId: id, reason: pauseReason });
    return nextAt;
  }

  private count(outcome: FiringOutcome, passed: PassedTimes): void {
    const firings = this.metrics.get(SCHEDULE_FIRINGS);
    if (outcome === 'started') firings.inc({ outcome });
    for (const [each, count] of Object.entries(passed)) if (count > 0) firings.inc({ outcome: each }, count);
  }

  private reasonOf(error: unknown, { tenantId, id }: Schedule): string {
    if (error instanceof ProtocolError) return error.message;
    this.logger.error('a schedule could not be fired', { err: error, tenantId, scheduleId: id });
    return 'an internal error of the platform';
  }
}
