import { CronTimes } from '@baton/cron';
import type { BackendClasses, IQueueBackend, Queue, RepeatOptions, Worker } from 'bullmq';
import type { Consumer } from './messaging.js';
import type { QuietLog } from './quiet-log.js';
import { QueueWorker, type Deliver } from './queue-worker.js';

/** The pattern of a schedule that fires once is its time after this. */
export const ONCE = 'once ';

/** How a driver runs BullMQ. */
export interface QueueDriver<B extends IQueueBackend, C> {
  classes: BackendClasses<B, C>;
  /** Connection of the producer. */
  producer: C;
  /** Connection of a consumer. */
  consumer: C;
  /** Keeps installations on one server apart. */
  name: string;
  prefix: string;
}

/** How often the consumers of a queue ask its server. Every question is a script of several commands, also while idle. */
export interface Pace {
  /** A job of a worker that died is delivered again after this, and up to two intervals. */
  lockDuration: number;
  stalledInterval: number;
  /** In seconds: a read of an empty queue. New jobs end it at once. */
  drainDelay: number;
}

/** For queues whose jobs are only notifications: if one is lost, a sweep finds the work in Postgres. */
export const NEWS: Pace = { lockDuration: 15_000, stalledInterval: 15_000, drainDelay: 30 };

/** A queue on BullMQ, with Redis or Postgres. */
export abstract class JobQueue<B extends IQueueBackend, C> {
  protected readonly queue: Pick<
    Queue,
    'add' | 'addBulk' | 'upsertJobScheduler' | 'removeJobScheduler' | 'waitUntilReady' | 'close'
  > & { getBackend(): Pick<IQueueBackend, 'getRanges'> };
  private readonly workers = new Set<QueueWorker>();

  constructor(
    private readonly driver: QueueDriver<B, C>,
    protected readonly log: QuietLog,
    private readonly pace: Pace = NEWS,
  ) {
    const queue = new driver.classes.Queue(driver.name, {
      connection: driver.producer,
      prefix: driver.prefix,
      // The producer must fail at once when the server is away, not wait for it.
      skipWaitingForReady: true,
      skipVersionCheck: true,
      defaultJobOptions: { removeOnComplete: true, removeOnFail: true },
      // Baton does not read BullMQ's own events.
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

  async close(): Promise<void> {
    await Promise.all([...this.workers].map((worker) => worker.close()));
    await this.queue.close().catch((error: unknown) => this.log.warn('the queue could not be closed', error));
  }

  /** Take jobs from now on, at most `concurrency` at a time. */
  protected open(concurrency: number, take: Deliver): Consumer & { isPaused(): boolean } {
    const open = (deliver: Deliver): Worker => {
      const { classes, consumer, name, prefix } = this.driver;
      const worker = new classes.Worker(
        name,
        // BullMQ keeps the time that a job of a scheduler is for in its options.
        (job) => deliver({ name: job.name, data: job.data, dueAt: job.opts.prevMillis }),
        {
          connection: consumer,
          prefix,
          autorun: false,
          concurrency,
          ...this.pace,
          // Postgres decides when a run has failed; the queue only delivers, again and again if it must.
          maxStalledCount: 1_000_000,
          runRetryDelay: 500,
          settings: { repeatStrategy: nextTick },
        },
      );
      return worker as unknown as Worker;
    };
    const worker = new QueueWorker(open, take, this.log);
    this.workers.add(worker);
    return {
      pause: () => worker.pause(),
      resume: () => worker.resume(),
      isPaused: () => worker.isPaused,
      close: async () => {
        await worker.close();
        this.workers.delete(worker);
      },
    };
  }
}

/** When a job scheduler ticks next, in ms since 1970; undefined = never again. */
function nextTick(after: number, { pattern = '', tz, startDate }: RepeatOptions): number | undefined {
  if (pattern.startsWith(ONCE)) {
    const at = Date.parse(pattern.slice(ONCE.length));
    return at > after ? at : undefined;
  }
  const start = startDate === undefined ? after : new Date(startDate).getTime() - 1;
  try {
    return new CronTimes(pattern, tz ?? 'UTC').next(Math.max(after, start));
  } catch {
    return undefined;
  }
}
