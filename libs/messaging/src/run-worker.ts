import type { IQueueBackend, Worker } from 'bullmq';
import { setTimeout as sleep } from 'node:timers/promises';
import { within } from './deadline.js';
import type { QuietLog } from './quiet-log.js';

type Deliver = (name: string, data: unknown) => Promise<void>;

const REOPEN_MS = 1_000;
const RETRY_MS = 250;
const CLOSE_MS = 2_000;

/** One BullMQ worker: opened until it holds, and closed without hanging on a server that is away. */
export class RunWorker {
  private readonly inHand = new Set<Promise<void>>();
  private readonly stop = new AbortController();
  private readonly opening: Promise<void>;
  private worker: Worker | undefined;
  private closing: Promise<void> | undefined;

  constructor(
    private readonly open: (deliver: Deliver) => Worker,
    private readonly execute: Deliver,
    private readonly log: QuietLog,
  ) {
    this.opening = this.run();
  }

  /** Takes no more jobs; resolves when those in hand are done. */
  close(): Promise<void> {
    this.closing ??= this.shut();
    return this.closing;
  }

  /** BullMQ keeps a failed first connection for good, so a worker that could not connect is replaced. */
  private async run(): Promise<void> {
    while (!this.stopped()) {
      const worker = this.open((name, data) => this.deliver(name, data));
      this.worker = worker;
      paceRetries(worker.getBackend());
      worker.on('error', (error) => this.log.warn('queue worker', error));
      try {
        await worker.waitUntilReady();
        if (this.stopped()) return;
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

  private async deliver(name: string, data: unknown): Promise<void> {
    const execution = this.execute(name, data).catch((error: unknown) => {
      // Never let BullMQ see it: whether a run failed is Postgres' to say, and its lease brings it back.
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
