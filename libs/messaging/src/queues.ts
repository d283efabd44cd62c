import { CronTimes } from '@baton/cron';
import type { BackendClasses, IQueueBackend, JobsOptions, Queue, RepeatOptions, Worker } from 'bullmq';
import { randomUUID } from 'node:crypto';
import { setImmediate as turnOfLoop, setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import type { Consumer, PushJob, RunConsumption, RunHandler, RunJob, Tick, TickTimes } from './messaging.js';
import { type QuietLog, within } from './channels.js';

/** Ticks that one process handles at a time; each takes a few milliseconds. */
const MAX_TICKS = 10;
/** The pattern of a schedule that fires once is its time after this. */
const ONCE = 'once ';
const REOPEN_MS = 1_000;
const RETRY_MS = 250;
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
interface Delivery {
  name: string;
  data: unknown;
  /** The time that the job of a schedule is for, in ms since 1970. */
  dueAt: number | undefined;
}

type Deliver = (delivery: Delivery) => Promise<void>;

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
abstract class JobQueue<B extends IQueueBackend, C> {
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
      // Nobody reads BullMQ's own events.
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

  /** For who only reads it. */
  get source(): Queue {
    return this.queue as unknown as Queue;
  }

  async close(): Promise<void> {
    await Promise.all([...this.workers].map((worker) => worker.close()));
    await this.queue.close().catch((error: unknown) => this.log.warn('closing the queue', error));
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
 * The two queues of runs, and the slots in which a worker executes the runs of both. Runs of tenants without another run in
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

  /** For who only reads them. */
  get sources(): Queue[] {
    return this.both.map(({ source }) => source);
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
    const consumers = [this.ordinary.consume(slots, false), this.reserved.consume(slots, true)];
    const [first] = consumers;
    return {
      pause: () => consumers.forEach((consumer) => consumer.pause()),
      resume: () => consumers.forEach((consumer) => consumer.resume()),
      begin: (run, mayUseReserved = false) =>
        first?.isPaused() === false && slots.beginNow(run, mayUseReserved),
      reserve: (count) => slots.reserve(count),
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

/**
 * One queue of runs. Nearly all of its cost is by the job, so runs that come together share jobs (why:
 * docs/inside/adr/0028-runs-share-jobs.md).
 */
class RunQueue<B extends IQueueBackend, C> extends JobQueue<B, C> {
  constructor(driver: QueueDriver<B, C>, log: QuietLog) {
    super(driver, log, RUNS);
  }

  enqueue(runs: readonly RunJob[]): Promise<void> {
    return this.addJobs(runs.map(entryOf));
  }

  enqueueNew(runs: readonly RunJob[]): Promise<void> {
    return this.addJobs(shareOut(runs));
  }

  /** Takes runs for free slots from now on. */
  consume(slots: RunSlots, mayUseReserved: boolean): Consumer & { isPaused(): boolean } {
    const giveBack = (rest: readonly RunJob[]): Promise<void> => this.addJobs([givenBack(rest)]);
    return this.open(Math.min(slots.count, MAX_DELIVERIES), ({ name, data }) => {
      const runs = name === 'runs' ? decodeJob('runs', name, data).runs : [decodeJob('run', name, data)];
      return slots.deliver(runs, mayUseReserved, giveBack);
    });
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

const entryOf = ({ tenantId, taskId, runId, attempt }: RunJob): Entry => {
  const data: RunJob = { tenantId, taskId, runId, attempt };
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

/** What waits for a slot: runs, and behind them jobs that are held. */
interface Waiting {
  runs: Set<() => void>;
  jobs: Set<() => void>;
}

const wakeOne = ([first]: Iterable<() => void>): void => first?.();

/**
 * The runs that a worker executes at a time. A job is done when its runs are claimed, and each run then holds its slot until
 * it is over. While all slots are taken, the jobs that were taken last are held: so the worker takes no further ones. For
 * ordinary runs the reserved slots count as taken.
 */
class RunSlots {
  private readonly running = new Set<Promise<void>>();
  private readonly waiting: { reserved: Waiting; ordinary: Waiting } = {
    reserved: { runs: new Set(), jobs: new Set() },
    ordinary: { runs: new Set(), jobs: new Set() },
  };
  /** Which queue is first in line for the next free slot. They take turns, so that neither starves. */
  private turns = [this.waiting.reserved, this.waiting.ordinary];
  private reserved = 0;
  private isClosed = false;

  constructor(
    readonly count: number,
    private readonly execute: RunHandler,
    private readonly log: QuietLog,
  ) {}

  /**
   * Resolves when the runs of a job are claimed or back on the queue, and the worker may take another job.
   * @param giveBack puts runs back on their queue
   */
  async deliver(
    runs: readonly RunJob[],
    mayUseReserved: boolean,
    giveBack: (runs: readonly RunJob[]) => Promise<void>,
  ): Promise<void> {
    const { runs: waitingRuns, jobs: waitingJobs } = this.waiting[mayUseReserved ? 'reserved' : 'ordinary'];
    const claims: Promise<void>[] = [];
    for (const run of runs) {
      while (this.isFull(mayUseReserved) && (await this.change(waitingRuns, SLOT_WAIT_MS)));
      if (this.isFull(mayUseReserved) || this.isClosed) break;
      claims.push(this.begin(run));
    }
    const rest = runs.slice(claims.length);
    // In a new job: this one is still there, and its id with it.
    if (rest.length > 0) await giveBack(rest);
    await Promise.all(claims);
    // Nobody waits for the end of a job, which takes a millisecond. So the runs write their first events before it.
    await turnOfLoop();
    await turnOfLoop();
    while (this.isFull(mayUseReserved) && !this.isClosed) await this.change(waitingJobs);
  }

  /** Executes a run that comes by itself. @returns false: it would have to wait */
  beginNow(execute: () => Promise<void>, mayUseReserved: boolean): boolean {
    if (this.isFull(mayUseReserved) || this.isClosed) return false;
    void this.occupy(execute());
    return true;
  }

  /** How many slots only the runs of the second queue may take. */
  reserve(slots: number): void {
    this.reserved = slots;
    this.wakeAll();
  }

  /** Begin no more runs. */
  close(): void {
    this.isClosed = true;
    this.wakeAll();
  }

  /** Resolves when all runs are over. */
  async over(): Promise<void> {
    await Promise.all(this.running);
  }

  private isFull(mayUseReserved: boolean): boolean {
    return this.running.size >= this.count - (mayUseReserved ? 0 : this.reserved);
  }

  /** Resolves when the run is claimed or over. */
  private begin(run: RunJob): Promise<void> {
    return new Promise((claimed) => {
      void this.occupy(this.execute(run, claimed)).then(claimed);
    });
  }

  /** A slot is taken until the run is over. Never rejects. */
  private occupy(run: Promise<void>): Promise<void> {
    const over = run
      // BullMQ must not see the error: Postgres decides whether a run failed, and its lease brings it back.
      .catch((error: unknown) => this.log.warn('job dropped', error))
      .then(() => {
        this.running.delete(over);
        this.wakeNext();
      });
    this.running.add(over);
    return over;
  }

  /**
   * A slot is free. A waiting run takes it. If none waits, a held job of each queue is done: the one of a queue that is empty now
   * would leave the slot unused.
   */
  private wakeNext(): void {
    const usable = this.isFull(false) ? [this.waiting.reserved] : this.turns;
    const next = usable.find(({ runs }) => runs.size > 0);
    if (!next) {
      for (const { jobs } of usable) wakeOne(jobs);
      return;
    }
    this.turns = this.turns.toSorted((a, b) => Number(a === next) - Number(b === next));
    wakeOne(next.runs);
  }

  private wakeAll(): void {
    const { reserved, ordinary } = this.waiting;
    for (const waiting of [reserved.runs, ordinary.runs, reserved.jobs, ordinary.jobs]) {
      for (const wake of waiting) wake();
    }
  }

  /** Waits for a free slot, or for the end. @returns false when the time is up */
  private change(waiting: Set<() => void>, ms?: number): Promise<boolean> {
    return new Promise((resolve) => {
      const done = (isInTime: boolean): void => {
        clearTimeout(timer);
        waiting.delete(wake);
        resolve(isInTime && !this.isClosed);
      };
      const wake = (): void => done(true);
      const timer = ms === undefined ? undefined : setTimeout(() => done(false), ms);
      waiting.add(wake);
      if (this.isClosed) wake();
    });
  }
}

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

  /** BullMQ keeps a failed first connection for good, so a worker that could not connect is replaced. */
  private async run(): Promise<void> {
    while (!this.stopped()) {
      const worker = this.open((delivery) => this.deliver(delivery));
      this.worker = worker;
      paceRetries(worker.getBackend());
      worker.on('error', (error) => this.log.warn('queue worker', error));
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

  private async deliver(delivery: Delivery): Promise<void> {
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
      const done = await within(CLOSE_MS, closed, 'the server does not answer').then(
        () => true,
        (error: unknown) => this.inHand.size === 0 && this.log.warn('closing the queue worker', error),
      );
      if (done) return;
    } while (this.inHand.size > 0);
    await within(CLOSE_MS, Promise.resolve(this.worker?.disconnect()), '').catch(() => undefined);
  }
}

/** BullMQ asks for the next job again at once when the server refuses it: a busy loop, were it not for this. */
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

const id = z.string().min(1);

/** Execute a run: ids only, the rest is read from Postgres. */
const runJob = z.object({
  tenantId: id,
  taskId: id,
  runId: id,
  attempt: z.int().min(0),
}) satisfies z.ZodType<RunJob>;

/** Execute several runs. */
const runsJob = z.object({ runs: z.array(runJob).min(1).max(1_000) });

/** Fire a schedule, if Postgres finds it due. */
const tick = z.object({
  tenantId: id,
  scheduleId: id,
  dueAt: z.number().transform((ms) => new Date(ms)),
}) satisfies z.ZodType<Tick>;

/** Look for due push configs. */
const pushJob = z.object({ tenantId: id, taskId: id }) satisfies z.ZodType<PushJob>;

/** Every kind of job by name: what producers may add and consumers receive. */
const jobCatalog = { run: runJob, runs: runsJob, tick, push: pushJob };

type Catalog = typeof jobCatalog;

/** Id of a run in the queue: adding the same id again while it waits is a no-op. BullMQ allows no `:` in it. */
export function jobIdOf({ runId, attempt }: RunJob): string {
  return `${runId}-${attempt}`;
}

/**
 * Reads a queue's entry.
 * @param expected the only job of that queue
 * @throws Error with a plain reason if the catalog has no such job
 */
export function decodeJob<N extends keyof Catalog>(
  expected: N,
  name: string,
  data: unknown,
): z.output<Catalog[N]> {
  if (name !== expected) throw new Error(`job "${name}" is not in the catalog of this queue`);
  const job = jobCatalog[expected].safeParse(data);
  if (!job.success) throw new Error(`job "${name}" is not in the catalog: ${z.prettifyError(job.error)}`);
  return job.data as z.output<Catalog[N]>;
}
