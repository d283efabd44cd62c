import type { IQueueBackend } from 'bullmq';
import { JobQueue } from './job-queue.js';
import { decodeJob } from './jobs.js';
import type { Consumer, PushJob } from './messaging.js';

/** The queue that wakes the deliveries of push notifications. */
export class PushQueue<B extends IQueueBackend, C> extends JobQueue<B, C> {
  /** Does nothing for a task that is on the queue already. */
  async enqueue(jobs: readonly PushJob[]): Promise<void> {
    const entries = jobs.map(({ tenantId, taskId }) => {
      const data: PushJob = { tenantId, taskId };
      return { name: 'push', data, opts: { jobId: taskId } };
    });
    const [first] = entries;
    if (first && entries.length === 1) await this.queue.add(first.name, first.data, first.opts);
    else if (first) await this.queue.addBulk(entries);
  }

  consume(concurrency: number, take: (job: PushJob) => Promise<void>): Consumer {
    return this.open(concurrency, async ({ name, data }) => take(decodeJob('push', name, data)));
  }
}
