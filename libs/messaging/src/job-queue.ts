import { CronTimes } from '@baton/cron';
import type { BackendClasses, IQueueBackend, Queue, RepeatOptions, Worker } from 'bullmq';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Consumer } from './messaging.js';
import { withTimeout } from './with-timeout.js';
import { type QuietLog } from './quiet-log.js';

/** The pattern of a schedule that fires once is its time after this. */
export const ONCE = 'once ';
/** A queue whose server is away is opened again this often. */
const REOPEN_MS = 1_000;
/** The pause after a refusal of the server (`paceRetries`). */
const RETRY_MS = 250;
/** A server that does not answer must not hold up the end of the process. */
const CLOSE_MS = 2_000;

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

/** One delivery of a job. */
interface JobDelivery {
  name: string;
  data: unknown;
  /** The time that the job of a schedule is for, in ms since 1970. */
  dueAt: number | undefined;
}

type Deliver = (delivery: JobDelivery) => Promise<void>;

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

/** One BullMQ worker: opened until it holds, and closed without hanging on a server that is away. */
class QueueWorker {
  private readonly inHand = new Set<Promise<void>>();
  private readonly stop = new AbortController();
  private readonly opening: Promise<void>;
  private worker: Worker | undefined;
  isPaused = false;
  private closing: Promise<void> | undefined;

  constructor(
    private readonly open: (deliver: Deliver) => Worker,
    private readonly execute: Deliver,
    private readonly log: QuietLog,
  ) {
    this.opening = this.run();
  }

  pause(): void {
    this.isPaused = true;
    void this.worker?.pause(true);
  }

  resume(): void {
    this.isPaused = false;
    void this.worker?.resume();
  }

  /** Takes no more jobs. Resolves when the running ones are done. */
  close(): Promise<void> {
    this.closing ??= this.shut();
    return this.closing;
  }

  /** BullMQ never reopens a failed first connection, so a worker that could not connect is replaced. */
  private async run(): Promise<void> {
    while (!this.stopped()) {
      const worker = this.open((delivery) => this.deliver(delivery));
      this.worker = worker;
      paceRetries(worker.getBackend());
      worker.on('error', (error) => this.log.warn('queue worker failed', error));
      try {
        await worker.waitUntilReady();
        if (this.stopped()) return;
        // Its `resume` then starts it.
        if (this.isPaused) await worker.pause(true);
        worker.run().catch((error: unknown) => this.log.warn('queue worker stopped', error));
        return;
      } catch (error) {
        this.log.warn('queue worker could not connect', error);
        await worker.close().catch(() => undefined);
        await sleep(REOPEN_MS, undefined, { signal: this.stop.signal }).catch(() => undefined);
      }
    }
  }

  private stopped(): boolean {
    return this.stop.signal.aborted;
  }

  private async deliver(delivery: JobDelivery): Promise<void> {
    const execution = this.execute(delivery).catch((error: unknown) => {
      // BullMQ must not see the error: Postgres decides whether a run failed, and its lease brings it back.
      this.log.warn('job dropped', error);
    });
    this.inHand.add(execution);
    await execution;
    this.inHand.delete(execution);
  }

  private async shut(): Promise<void> {
    this.stop.abort();
    // BullMQ does not give back the connection of a worker that is closed while it opens.
    const closed = this.opening.then(() => this.worker?.close());
    do {
      await Promise.all(this.inHand);
      // Acknowledging the last jobs needs the server; without it their locks expire by themselves.
      const done = await withTimeout(CLOSE_MS, closed, 'the server does not answer').then(
        () => true,
        (error: unknown) =>
          this.inHand.size === 0 && this.log.warn('the queue worker could not be closed', error),
      );
      if (done) return;
    } while (this.inHand.size > 0);
    await withTimeout(CLOSE_MS, Promise.resolve(this.worker?.disconnect()), '').catch(() => undefined);
  }
}

/** BullMQ asks for the next job again at once when the server refuses it. Without this pause that is a busy loop. */
function paceRetries(backend: Pick<IQueueBackend, 'moveToActive'>): void {
  const moveToActive = backend.moveToActive.bind(backend);
  backend.moveToActive = async (...request): Promise<unknown[]> => {
    try {
      return (await moveToActive(...request)) as unknown[];
    } catch (error) {
      await sleep(RETRY_MS);
      throw error;
    }
  };
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
