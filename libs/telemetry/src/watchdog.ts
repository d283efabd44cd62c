import { url as inspectorUrl } from 'node:inspector';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import type { Logger } from './logger.js';

/** The watched process. */
export interface WatchdogOptions {
  /** As the log names the process: `api` or `worker`. */
  processName: string;
  /** Maximum time that the event loop may be blocked, in milliseconds. */
  limitMs: number;
  /** Number of current runs or requests, for the log. */
  inHand: () => number;
  logger: Logger;
}

/** What the thread is started with. */
export interface WatchdogData {
  processName: string;
  limitMs: number;
  stepMs: number;
  silent: boolean;
  shared: SharedArrayBuffer;
}

/** Positions in the memory that both threads share, as 32-bit numbers. */
export const SHARED = { pulse: 0, inHand: 1, debugged: 2 } as const;

/** A thread that dies at once must not take the CPU. */
const RESTART_MS = 1_000;

/**
 * Kills this process when its event loop is blocked for `limitMs`. A separate thread does this, because the main thread
 * cannot. Docker, Kubernetes or `npm start` then start it again. Does not kill a process that a debugger may have
 * stopped, or that was suspended as a whole. Call it once, when the process is up.
 *
 * It also answers the pings of a parent process (`{ type: 'ping' }` over the IPC channel), which shows the parent that
 * the event loop works.
 */
export function startWatchdog(options: WatchdogOptions): void {
  const { processName, limitMs, inHand, logger } = options;
  const stepMs = Math.min(Math.max(limitMs / 20, 20), 250);
  const shared = new SharedArrayBuffer(4 * Object.keys(SHARED).length);
  const numbers = new Int32Array(shared);
  const showLife = (): void => {
    Atomics.store(numbers, SHARED.inHand, inHand());
    Atomics.store(numbers, SHARED.debugged, inspectorUrl() === undefined ? 0 : 1);
    Atomics.add(numbers, SHARED.pulse, 1);
  };
  showLife();
  setInterval(showLife, stepMs).unref();
  const silent = !logger.isEnabled('fatal');
  startThread({ processName, limitMs, stepMs, silent, shared }, logger);
  answerPings();
}

/** A dead thread is started again, because nothing else would notice a blocked event loop. */
function startThread(workerData: WatchdogData, logger: Logger): void {
  const thread = new Worker(join(__dirname, 'watchdog-thread.js'), { workerData, execArgv: [] });
  thread.unref();
  thread.on('error', (error) => logger.warn('the watchdog failed and is restarted', { err: error }));
  thread.once('exit', () => {
    void delay(RESTART_MS, undefined, { ref: false }).then(() => startThread(workerData, logger));
  });
}

function answerPings(): void {
  process.on('message', (message: unknown) => {
    const isPing = typeof message === 'object' && message !== null && 'type' in message;
    if (isPing && message.type === 'ping' && process.connected) process.send?.({ type: 'pong' });
  });
}
