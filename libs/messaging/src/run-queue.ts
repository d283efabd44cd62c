import type { IQueueBackend, JobsOptions } from 'bullmq';
import { randomUUID } from 'node:crypto';
import { setImmediate as turnOfLoop } from 'node:timers/promises';
import type { Consumer, RunHandler, RunJob } from './messaging.js';
import { decodeJob, jobIdOf, JobQueue, type Pace, type QueueDriver } from './queues.js';
import type { QuietLog } from './channels.js';

/**
 * The job of a run whose worker died before the claim is delivered again within eight seconds. The job of a claimed run is
 * not needed again: the sweeper enqueues the run when its lease has expired.
 */
export const RUNS: Pace = { lockDuration: 2_000, stalledInterval: 3_000, drainDelay: 8 };

/** Maximum number of runs that share a job. More would bind more runs to the worker that happens to take the job. */
const MAX_SHARED = 8;
/** Jobs whose claims one worker waits for at a time. */
const MAX_DELIVERIES = 8;
/** How long a run waits for a slot of the worker that took its job. Then it goes back to the queue, for the others. */
const SLOT_WAIT_MS = 25;

interface Entry {
  name: string;
  data: object;
  opts: JobsOptions;
}

/**
 * The queue of runs. Nearly all of its cost is by the job, so runs that come together share jobs (why:
 * docs/inside/adr/0028-runs-share-jobs.md).
 */
export class RunQueue<B extends IQueueBackend, C> extends JobQueue<B, C> {
  private readonly slots = new Set<RunSlots>();

  constructor(driver: QueueDriver<B, C>, log: QuietLog) {
    super(driver, log, RUNS);
  }

  /** Puts runs on the queue, each in a job of its own. Does nothing for a run that has such a job. */
  enqueue(runs: readonly RunJob[]): Promise<void> {
    return this.addJobs(runs.map(entryOf));
  }

  /** Puts runs on the queue that were not there with this attempt. They share jobs. */
  enqueueNew(runs: readonly RunJob[]): Promise<void> {
    return this.addJobs(shareOut(runs));
  }

  /** Takes runs from now on. */
  consume(concurrency: number, execute: RunHandler): Consumer {
    const slots = new RunSlots(concurrency, execute, (rest) => this.addJobs([givenBack(rest)]), this.log);
    this.slots.add(slots);
    const consumer = this.open(Math.min(concurrency, MAX_DELIVERIES), ({ name, data }) =>
      slots.deliver(name === 'runs' ? decodeJob('runs', name, data).runs : [decodeJob('run', name, data)]),
    );
    const close = async (): Promise<void> => {
      slots.close();
      await consumer.close();
      await slots.over();
      this.slots.delete(slots);
    };
    return { ...consumer, close };
  }

  override async close(): Promise<void> {
    for (const slots of this.slots) slots.close();
    await super.close();
    await Promise.all([...this.slots].map((slots) => slots.over()));
  }

  async depth(): Promise<{ waiting: number; active: number }> {
    const [waiting, active] = await this.queue.getBackend().getRanges(['wait', 'active'], 0, -1);
    return { waiting: countRuns(waiting), active: countRuns(active) };
  }

  private async addJobs(entries: Entry[]): Promise<void> {
    const [first, ...more] = entries;
    // On Postgres a bulk makes a temporary table: for one job that is ten times the work of adding it.
    if (more.length > 0) await this.queue.addBulk(entries);
    else if (first) await this.queue.add(first.name, first.data, first.opts);
  }
}

const entryOf = ({ tenantId, taskId, runId, attempt, isAhead }: RunJob): Entry => {
  const data: RunJob = { tenantId, taskId, runId, attempt, ...(isAhead && { isAhead }) };
  return { name: 'run', data, opts: { jobId: jobIdOf(data) } };
};

/** A job of several runs. Its id says how many. */
const sharedEntry = (runs: readonly RunJob[]): Entry => ({
  name: 'runs',
  data: { runs: runs.map((run) => entryOf(run).data) },
  opts: { jobId: `${runs.length}x${randomUUID()}` },
});

/** Runs that no slot was free for. They go to the head of the queue: nothing that came after them goes first. */
const givenBack = (runs: readonly RunJob[]): Entry => {
  const { opts, ...entry } = sharedEntry(runs);
  return { ...entry, opts: { ...opts, lifo: true } };
};

/** Jobs of about the same size. */
function shareOut(runs: readonly RunJob[]): Entry[] {
  const jobs = Math.ceil(runs.length / MAX_SHARED);
  return Array.from({ length: jobs }, (_, i) => i).flatMap((i) => {
    const from = Math.floor((i * runs.length) / jobs);
    const shared = runs.slice(from, Math.floor(((i + 1) * runs.length) / jobs));
    return shared.length > 1 ? sharedEntry(shared) : shared.map(entryOf);
  });
}

const countRuns = (jobIds: readonly string[] = []): number =>
  jobIds.reduce((sum, jobId) => sum + Number(/^(\d+)x/.exec(jobId)?.[1] ?? 1), 0);

/**
 * The runs that a worker executes at a time. A job is done when its runs are claimed, and each run then holds its slot until
 * it is over. While all slots are taken, the jobs that were taken last are held: so the worker takes no further ones.
 */
class RunSlots {
  private readonly running = new Set<Promise<void>>();
  /** Runs that wait for a slot, and behind them jobs that are held. */
  private readonly waiting = { runs: new Set<() => void>(), jobs: new Set<() => void>() };
  private isClosed = false;

  constructor(
    private readonly count: number,
    private readonly execute: RunHandler,
    private readonly giveBack: (runs: readonly RunJob[]) => Promise<void>,
    private readonly log: QuietLog,
  ) {}

  /** Resolves when the runs of a job are claimed or back on the queue, and the worker may take another job. */
  async deliver(runs: readonly RunJob[]): Promise<void> {
    const claims: Promise<void>[] = [];
    for (const run of runs) {
      while (this.isFull && (await this.change('runs', SLOT_WAIT_MS)));
      if (this.isFull || this.isClosed) break;
      claims.push(this.begin(run));
    }
    const rest = runs.slice(claims.length);
    // In a new job: this one is still there, and its id with it.
    if (rest.length > 0) await this.giveBack(rest);
    await Promise.all(claims);
    // Nobody waits for the end of a job, which takes a millisecond. So the runs write their first events before it.
    await turnOfLoop();
    await turnOfLoop();
    while (this.isFull && !this.isClosed) await this.change('jobs');
  }

  /** Begin no more runs. */
  close(): void {
    this.isClosed = true;
    for (const waiting of Object.values(this.waiting)) for (const wake of waiting) wake();
  }

  /** Resolves when all runs are over. */
  async over(): Promise<void> {
    await Promise.all(this.running);
  }

  private get isFull(): boolean {
    return this.running.size >= this.count;
  }

  /** Resolves when the run is claimed or over. */
  private begin(run: RunJob): Promise<void> {
    return new Promise((claimed) => {
      const over = this.run(run, claimed).then(() => {
        this.running.delete(over);
        claimed();
        const [next] = this.waiting.runs.size > 0 ? this.waiting.runs : this.waiting.jobs;
        next?.();
      });
      this.running.add(over);
    });
  }

  private async run(run: RunJob, claimed: () => void): Promise<void> {
    try {
      await this.execute(run, claimed);
    } catch (error) {
      // BullMQ must not see the error: Postgres decides whether a run failed, and its lease brings it back.
      this.log.warn('job dropped', error);
    }
  }

  /** Waits for a free slot, or for the end. @returns false when the time is up */
  private change(who: 'runs' | 'jobs', ms?: number): Promise<boolean> {
    return new Promise((resolve) => {
      const done = (isInTime: boolean): void => {
        clearTimeout(timer);
        this.waiting[who].delete(wake);
        resolve(isInTime && !this.isClosed);
      };
      const wake = (): void => done(true);
      const timer = ms === undefined ? undefined : setTimeout(() => done(false), ms);
      this.waiting[who].add(wake);
      if (this.isClosed) wake();
    });
  }
}
