import type { IQueueBackend, RepeatOptions } from 'bullmq';
import type { Consumer, Tick, TickTimes } from './messaging.js';
import { JobQueue, ONCE } from './job-queue.js';
import { decodeJob } from './jobs.js';

/** Ticks that one process handles at a time; each takes a few milliseconds. */
const MAX_TICKS = 10;

/** When schedules fire, on BullMQ's job schedulers: each schedule is one, and its jobs are the ticks. */
export class TickQueue<B extends IQueueBackend, C> extends JobQueue<B, C> {
  /** Replaces the earlier times of the schedule. */
  async set({ tenantId, scheduleId, ...times }: TickTimes): Promise<void> {
    const { at, cron, timeZone, startsAt } = times;
    const repeat: RepeatOptions = {
      pattern: at ? ONCE + at.toISOString() : cron,
      tz: timeZone,
      ...(startsAt && { startDate: startsAt }),
    };
    const opts = { removeOnComplete: true, removeOnFail: true };
    await this.queue.upsertJobScheduler(scheduleId, repeat, {
      name: 'tick',
      data: { tenantId, scheduleId },
      opts,
    });
  }

  async stop(scheduleId: string): Promise<void> {
    await this.queue.removeJobScheduler(scheduleId);
  }

  consume(take: (tick: Tick) => Promise<void>): Consumer {
    return this.open(MAX_TICKS, async ({ name, data, dueAt }) =>
      take(decodeJob('tick', name, { ...(data as object), dueAt })),
    );
  }
}
