import type { IQueueBackend, JobsOptions } from 'bullmq';
import { randomUUID } from 'node:crypto';
import { JobQueue, type Pace, type QueueDriver } from './job-queue.js';
import { decodeJob } from './jobs.js';
import type { Consumer, RunJob } from './messaging.js';
import type { QuietLog } from './quiet-log.js';
import type { RunSlots, RunSource } from './run-slots.js';

/**
 * The job of a run whose worker died before the claim is delivered again within eight seconds. The job of a claimed run is
 * not needed again: the sweeper enqueues the run when its lease has expired.
 */
export const RUN_PACE: Pace = { lockDuration: 2_000, stalledInterval: 3_000, drainDelay: 8 };

/** Maximum number of runs that share a job. More would bind more runs to the worker that happens to take the job. */
const MAX_SHARED = 8;

/** Jobs whose claims one worker waits for at a time. */
const MAX_DELIVERIES = 8;

interface NewJob {
  name: string;
  data: object;
  opts: JobsOptions;
}

/**
 * One queue of runs. Nearly all of its cost is by the job, so runs that come together share jobs (why:
 * docs/inside/adr/0028-runs-share-jobs.md).
 */
export class RunQueue<B extends IQueueBackend, C> extends JobQueue<B, C> {
  constructor(driver: QueueDriver<B, C>, log: QuietLog) {
    super(driver, log, RUN_PACE);
  }

  enqueue(runs: readonly RunJob[]): Promise<void> {
    return this.addJobs(runs.map(jobOf));
  }

  enqueueNew(runs: readonly RunJob[]): Promise<void> {
    return this.addJobs(jobsOf(runs));
  }

  /** Puts runs without a slot back at the head of this queue: they stay before those that came later. */
  giveBack(runs: readonly RunJob[]): Promise<void> {
    return this.addJobs([headJob(runs)]);
  }

  /**
   * Takes runs for free slots from now on.
   * @param ordinary the queue of ordinary runs
   */
  consume(
    slots: RunSlots,
    mayUseReserved: boolean,
    ordinary: RunQueue<B, C> = this,
  ): Consumer & { isPaused(): boolean } {
    const source: RunSource = {
      mayUseReserved,
      giveBack: (runs) => this.giveBack(runs),
      giveToOrdinary: (runs) => ordinary.giveBack(runs),
    };
    return this.open(Math.min(slots.count, MAX_DELIVERIES), ({ name, data }) => {
      const runs = name === 'runs' ? decodeJob('runs', name, data).runs : [decodeJob('run', name, data)];
      return slots.deliver(runs, source);
    });
  }

  async depth(): Promise<{ waiting: number; active: number }> {
    const [waiting, active] = await this.queue.getBackend().getRanges(['wait', 'active'], 0, -1);
    return { waiting: countRuns(waiting), active: countRuns(active) };
  }

  private async addJobs(entries: NewJob[]): Promise<void> {
    const [first, ...more] = entries;
    // On Postgres a bulk makes a temporary table: for one job that is ten times the work of adding it.
    if (more.length > 0) await this.queue.addBulk(entries);
    else if (first) await this.queue.add(first.name, first.data, first.opts);
  }
}

/** A job of one run. */
const jobOf = ({ tenantId, taskId, runId, attempt }: RunJob): NewJob => {
  const data: RunJob = { tenantId, taskId, runId, attempt };
  return { name: 'run', data, opts: { jobId: jobIdOf(data) } };
};

/** A job of several runs. Its id has their number. */
const sharedJob = (runs: readonly RunJob[]): NewJob => ({
  name: 'runs',
  data: { runs: runs.map((run) => jobOf(run).data) },
  opts: { jobId: `${runs.length}x${randomUUID()}` },
});

/** A job of several runs that goes to the head of the queue. */
const headJob = (runs: readonly RunJob[]): NewJob => {
  const { opts, ...entry } = sharedJob(runs);
  return { ...entry, opts: { ...opts, lifo: true } };
};

/** The runs in jobs of about the same size, with at most `MAX_SHARED` in each. */
function jobsOf(runs: readonly RunJob[]): NewJob[] {
  const jobs = Math.ceil(runs.length / MAX_SHARED);
  return Array.from({ length: jobs }, (_, i) => i).flatMap((i) => {
    const from = Math.floor((i * runs.length) / jobs);
    const shared = runs.slice(from, Math.floor(((i + 1) * runs.length) / jobs));
    return shared.length > 1 ? sharedJob(shared) : shared.map(jobOf);
  });
}

const countRuns = (jobIds: readonly string[] = []): number =>
  jobIds.reduce((sum, jobId) => sum + Number(/^(\d+)x/.exec(jobId)?.[1] ?? 1), 0);

/** Id of a run in the queue: adding the same id again while it waits is a no-op. BullMQ allows no `:` in it. */
export function jobIdOf({ runId, attempt }: RunJob): string {
  return `${runId}-${attempt}`;
}
