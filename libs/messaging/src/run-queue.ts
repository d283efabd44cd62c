import type { BackendClasses, IQueueBackend, Queue, Worker } from 'bullmq';
import { decodeJob, jobIdOf } from './job-catalog.js';
import type { Consumer, RunJob } from './messaging.js';
import type { QuietLog } from './quiet-log.js';
import { RunWorker } from './run-worker.js';

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

/** The queue of runs on BullMQ, whichever server it lives on. */
export class RunQueue<B extends IQueueBackend, C> {
  private readonly queue: Pick<Queue, 'add' | 'addBulk' | 'getJobCounts' | 'waitUntilReady' | 'close'>;
  private readonly workers = new Set<RunWorker>();

  constructor(
    private readonly driver: QueueDriver<B, C>,
    private readonly log: QuietLog,
  ) {
    const queue = new driver.classes.Queue(driver.name, {
      connection: driver.producer,
      prefix: driver.prefix,
      // The producer must fail at once when the server is away, not wait for it.
      skipWaitingForReady: true,
      skipVersionCheck: true,
      defaultJobOptions: { removeOnComplete: true, removeOnFail: true },
      // Nobody reads BullMQ's own events.
      streams: { events: { maxLen: 100 } },
    });
    // Its calls reject, and its connection reports by itself.
    queue.on('error', () => undefined);
    this.queue = queue;
  }

  ready(): Promise<unknown> {
    return this.queue.waitUntilReady();
  }

  /** Puts the runs on the queue; one that is there already is left alone. */
  async enqueue(runs: readonly RunJob[]): Promise<void> {
    if (runs.length === 0) return;
    const entries = runs.map(({ tenantId, taskId, runId, attempt }) => {
      const data: RunJob = { tenantId, taskId, runId, attempt };
      return { name: 'run', data, opts: { jobId: jobIdOf(data) } };
    });
    const [first] = entries;
    // On Postgres a bulk makes a temporary table: for one job that is ten times the work of adding it.
    if (first && entries.length === 1) await this.queue.add(first.name, first.data, first.opts);
    else await this.queue.addBulk(entries);
  }

  consume(concurrency: number, execute: (job: RunJob) => Promise<void>): Consumer {
    const open = (deliver: (name: string, data: unknown) => Promise<void>): Worker => {
      const { classes, consumer, name, prefix } = this.driver;
      const worker = new classes.Worker(name, (job) => deliver(job.name, job.data), {
        connection: consumer,
        prefix,
        autorun: false,
        concurrency,
        // A job whose worker died before its claim is delivered again within three seconds. That of a claimed run
        // waits for nothing here: the sweeper enqueues the run anew when its lease has run out.
        lockDuration: 2_000,
        stalledInterval: 1_000,
        // Postgres decides when a run has failed; the queue only delivers, again and again if it must.
        maxStalledCount: 1_000_000,
        runRetryDelay: 500,
      });
      return worker as unknown as Worker;
    };
    const worker = new RunWorker(open, async (name, data) => execute(decodeJob('run', name, data)), this.log);
    this.workers.add(worker);
    return {
      close: async () => {
        await worker.close();
        this.workers.delete(worker);
      },
    };
  }

  async depth(): Promise<{ waiting: number; active: number }> {
    const counts = await this.queue.getJobCounts('wait', 'active');
    return { waiting: counts['wait'] ?? 0, active: counts['active'] ?? 0 };
  }

  async close(): Promise<void> {
    await Promise.all([...this.workers].map((worker) => worker.close()));
    await this.queue.close().catch((error: unknown) => this.log.warn('closing the queue', error));
  }
}
