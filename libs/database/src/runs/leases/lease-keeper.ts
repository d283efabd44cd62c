import { within } from '@baton/telemetry';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import type { HeartbeatEvent, BeatOptions } from './lease-beat.js';
import type { LeaseKey, LostLease } from './lease-key.js';
import { LeaseTable } from './lease-table.js';

/** Options of the lease thread. */
export interface ThreadData {
  options: BeatOptions;
  /** Where the leases are written: `readLeases`. */
  leases: SharedArrayBuffer[];
  /** One 64-bit number: when the main thread last showed that it lives, in nanoseconds of the machine's clock. */
  pulse: SharedArrayBuffer;
}

/** More room for leases, or the end. */
export type ThreadOrder = { type: 'room'; leases: SharedArrayBuffer } | { type: 'close' };

export interface LeaseKeeperOptions extends BeatOptions {
  /** The thread's code; default: that of the build this file belongs to. */
  threadFile?: string;
}

const THREAD_FILE = join(__dirname, 'lease-thread.js');
/** The pause before a thread that has died starts again. A lease lasts many times longer. */
const RESTART_MS = 500;
/** A statement that extends leases takes milliseconds. A thread that hangs is ended. */
const CLOSE_MS = 2_000;

/**
 * Extends the leases of all runs from a separate thread with its own connection to Postgres, so that an agent that
 * blocks the event loop does not lose them. If the main thread is silent for `loopStallMs`, the leases expire, even if
 * the watchdog does not kill the process because it is being debugged. A thread that dies is started again.
 */
export class LeaseKeeper {
  private readonly leases = new LeaseTable((leases) => this.order({ type: 'room', leases }));
  private readonly pulse = new SharedArrayBuffer(8);
  private readonly lastPulse = new BigInt64Array(this.pulse);
  private readonly pulseTimer: NodeJS.Timeout;
  private readonly stop = new AbortController();
  private thread: Worker;

  /** @param publish called with the messages of the lease thread, on the main thread */
  constructor(
    private readonly options: LeaseKeeperOptions,
    private readonly publish: (event: HeartbeatEvent) => void,
  ) {
    this.showLife();
    this.pulseTimer = setInterval(() => this.showLife(), options.heartbeatMs);
    this.pulseTimer.unref();
    this.thread = this.startThread();
  }

  /** Keep the lease until it is released. */
  hold(key: LeaseKey): void {
    this.leases.hold(key);
  }

  release(key: LostLease): void {
    this.leases.release(key);
  }

  /** Stop extending all leases. Resolves when the thread has ended. */
  async close(): Promise<void> {
    if (this.stop.signal.aborted) return;
    this.stop.abort();
    clearInterval(this.pulseTimer);
    const { thread } = this;
    const ended = new Promise((resolve) => thread.once('exit', resolve));
    this.order({ type: 'close' });
    await within(ended, CLOSE_MS);
    await thread.terminate();
  }

  private showLife(): void {
    Atomics.store(this.lastPulse, 0, process.hrtime.bigint());
  }

  private startThread(): Worker {
    const { threadFile = THREAD_FILE, ...options } = this.options;
    const workerData: ThreadData = { options, leases: this.leases.buffers, pulse: this.pulse };
    const thread = new Worker(threadFile, { workerData, execArgv: [] });
    thread.unref();
    thread.on('message', (event: HeartbeatEvent) => this.publish(event));
    thread.on('error', (error: Error) => this.publish({ type: 'failed', reason: error.message }));
    thread.once('exit', () => void this.startAgain());
    return thread;
  }

  private async startAgain(): Promise<void> {
    const pause = delay(RESTART_MS, undefined, { signal: this.stop.signal, ref: false });
    await pause.catch(() => undefined);
    if (this.stop.signal.aborted) return;
    this.thread = this.startThread();
    // The new thread begins without the failure of the old one. If Postgres is still away, its first beat reports it.
    this.publish({ type: 'back' });
  }

  private order(order: ThreadOrder): void {
    this.thread.postMessage(order);
  }
}
