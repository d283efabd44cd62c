import type { IQueueBackend, Worker } from 'bullmq';
import { setTimeout as sleep } from 'node:timers/promises';
import { withTimeout } from './with-timeout.js';
import type { QuietLog } from './quiet-log.js';

/** A queue whose server is away is opened again this often. */
const REOPEN_MS = 1_000;
/** The pause after a refusal of the server (`paceRetries`). */
const RETRY_MS = 250;
/** A server that does not answer must not hold up the end of the process. */
const CLOSE_MS = 2_000;

/** One delivery of a job. */
export interface JobDelivery {
  name: string;
  data: unknown;
  /** The time that the job of a schedule is for, in ms since 1970. */
  dueAt: number | undefined;
}

export type Deliver = (delivery: JobDelivery) => Promise<void>;

/** One BullMQ worker: opened until it holds, and closed without hanging on a server that is away. */
export class QueueWorker {
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
