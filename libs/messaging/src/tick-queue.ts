import { CronExpressionParser } from 'cron-parser';
import type { IQueueBackend, Queue, RepeatOptions, Worker } from 'bullmq';
import { decodeJob } from './job-catalog.js';
import type { Consumer, Tick, TickTimes } from './messaging.js';
import type { QuietLog } from './quiet-log.js';
import type { QueueDriver } from './run-queue.js';
import { RunWorker } from './run-worker.js';

/** Ticks that one process has in hand at a time; each takes a few milliseconds. */
const AT_ONCE = 10;
/** The pattern of a schedule that fires once is its time after this. */
const ONCE = 'once ';

/** When schedules fire, on BullMQ's job schedulers: each schedule is one, and its jobs are the ticks. */
export class TickQueue<B extends IQueueBackend, C> {
  private readonly queue: Pick<
    Queue,
    'upsertJobScheduler' | 'removeJobScheduler' | 'waitUntilReady' | 'close'
  >;
  private readonly workers = new Set<RunWorker>();

  constructor(
    private readonly driver: QueueDriver<B, C>,
    private readonly log: QuietLog,
  ) {
    const queue = new driver.classes.Queue(driver.name, {
      connection: driver.producer,
      prefix: driver.prefix,
      skipWaitingForReady: true,
      skipVersionCheck: true,
      streams: { events: { maxLen: 100 } },
      settings: { repeatStrategy: nextTick },
    });
    // Its calls reject, and its connection reports by itself.
    queue.on('error', () => undefined);
    this.queue = queue;
  }

  ready(): Promise<unknown> {
    return this.queue.waitUntilReady();
  }

  /** In place of what was said before of the schedule. */
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
    const open = (deliver: (name: string, data: unknown) => Promise<void>): Worker => {
      const { classes, consumer, name, prefix } = this.driver;
      const worker = new classes.Worker(
        name,
        // BullMQ keeps the time that a job of a scheduler is for in its options.
        (job) => deliver(job.name, { ...(job.data as object), dueAt: job.opts.prevMillis }),
        {
          connection: consumer,
          prefix,
          autorun: false,
          concurrency: AT_ONCE,
          lockDuration: 2_000,
          stalledInterval: 1_000,
          maxStalledCount: 1_000_000,
          runRetryDelay: 500,
          settings: { repeatStrategy: nextTick },
        },
      );
      return worker as unknown as Worker;
    };
    const worker = new RunWorker(open, async (name, data) => take(decodeJob('tick', name, data)), this.log);
    this.workers.add(worker);
    return {
      close: async () => {
        await worker.close();
        this.workers.delete(worker);
      },
    };
  }

  async close(): Promise<void> {
    await Promise.all([...this.workers].map((worker) => worker.close()));
    await this.queue.close().catch((error: unknown) => this.log.warn('closing the queue', error));
  }
}

/** When a job scheduler ticks next, in ms since 1970; undefined = never again. */
function nextTick(after: number, { pattern = '', tz, startDate }: RepeatOptions): number | undefined {
  if (pattern.startsWith(ONCE)) {
    const at = Date.parse(pattern.slice(ONCE.length));
    return at > after ? at : undefined;
  }
  const start = startDate === undefined ? after : new Date(startDate).getTime() - 1;
  const currentDate = new Date(Math.max(after, start));
  try {
    return CronExpressionParser.parse(pattern, { tz, currentDate }).next().getTime();
  } catch {
    return undefined;
  }
}
