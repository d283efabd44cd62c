import type { IQueueBackend } from 'bullmq';
import type { QueueDriver } from './job-queue.js';
import type { RunConsumption, RunHandler, RunJob } from './messaging.js';
import type { QuietLog } from './quiet-log.js';
import { RunQueue } from './run-queue.js';
import { RunSlots } from './run-slots.js';

/**
 * The two queues of runs, and the slots in which a worker executes the runs of both. Runs of tenants with few runs in
 * flight have a queue of their own. So a worker can take them for its reserved slots, however many other runs are before them
 * (docs/inside/adr/0005-fair-dispatch.md).
 */
export class RunQueues<B extends IQueueBackend, C> {
  private readonly ordinary: RunQueue<B, C>;
  private readonly reserved: RunQueue<B, C>;
  private readonly slots = new Set<RunSlots>();

  /** @param driver names the queue of ordinary runs */
  constructor(
    driver: QueueDriver<B, C>,
    private readonly log: QuietLog,
  ) {
    this.ordinary = new RunQueue(driver, log);
    this.reserved = new RunQueue({ ...driver, name: `${driver.name}-reserved` }, log);
  }

  async ready(): Promise<void> {
    await Promise.all(this.both.map((queue) => queue.ready()));
  }

  /** Puts runs on the queue, each in a job of its own. Does nothing for a run that has such a job. */
  enqueue(runs: readonly RunJob[]): Promise<void> {
    return this.split(runs, (queue, some) => queue.enqueue(some));
  }

  /** Puts runs on the queue that were not there with this attempt. They share jobs. */
  enqueueNew(runs: readonly RunJob[]): Promise<void> {
    return this.split(runs, (queue, some) => queue.enqueueNew(some));
  }

  /** Takes runs from now on. */
  consume(concurrency: number, execute: RunHandler): RunConsumption {
    const slots = new RunSlots(concurrency, execute, this.log);
    this.slots.add(slots);
    const consumers = [
      this.ordinary.consume(slots, false),
      this.reserved.consume(slots, true, this.ordinary),
    ];
    const [first] = consumers;
    return {
      pause: () => consumers.forEach((consumer) => consumer.pause()),
      resume: () => consumers.forEach((consumer) => consumer.resume()),
      tryStart: (run, execute) => first?.isPaused() === false && slots.tryStart(run, execute),
      reserve: (count, perTenant) => slots.reserve(count, perTenant),
      close: async () => {
        slots.close();
        await Promise.all(consumers.map((consumer) => consumer.close()));
        await slots.over();
        this.slots.delete(slots);
      },
    };
  }

  async close(): Promise<void> {
    for (const slots of this.slots) slots.close();
    await Promise.all(this.both.map((queue) => queue.close()));
    await Promise.all([...this.slots].map((slots) => slots.over()));
  }

  /** The runs of both queues. */
  async depth(): Promise<{ waiting: number; active: number }> {
    const depths = await Promise.all(this.both.map((queue) => queue.depth()));
    return {
      waiting: depths.reduce((sum, { waiting }) => sum + waiting, 0),
      active: depths.reduce((sum, { active }) => sum + active, 0),
    };
  }

  private get both(): RunQueue<B, C>[] {
    return [this.ordinary, this.reserved];
  }

  private async split(
    runs: readonly RunJob[],
    add: (queue: RunQueue<B, C>, some: readonly RunJob[]) => Promise<void>,
  ): Promise<void> {
    const reserved = runs.filter(({ mayUseReserved = false }) => mayUseReserved);
    const ordinary = runs.filter(({ mayUseReserved = false }) => !mayUseReserved);
    // First, so that the first run of a tenant takes no reserved slot while others are free.
    if (reserved.length > 0) await add(this.reserved, reserved);
    if (ordinary.length > 0) await add(this.ordinary, ordinary);
  }
}
