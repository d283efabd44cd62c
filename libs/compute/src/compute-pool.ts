import { gauge, type Metrics, TimeShares } from '@baton/telemetry';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Piscina } from 'piscina';
import { MAX_WAITING, ComputeRefused } from './compute-refused.js';

/** A piece of work for a thread; schemas and values are JSON texts. */
export type Work = { kind: 'compile'; schema: string } | { kind: 'check'; schema: string; value: string };

/** The result. */
export interface WorkResult {
  /** In plain words. */
  problem?: string;
  /** How long the work took in its thread. */
  tookMs: number;
}

export interface ComputeOptions {
  /** Maximum number of threads, at least 2: a tenant never has all of them. */
  threads: number;
  /** Maximum CPU time of one piece of work, in milliseconds. It may last ten times as long on a busy machine. */
  timeoutMs: number;
  metrics?: Metrics;
}

interface WaitingWork {
  tenantId: string;
  work: Work;
  resolve: (result: WorkResult) => void;
  reject: (error: Error) => void;
}

const JOBS = gauge(
  'baton_compute_jobs',
  'Checks of JSON schemas in the threads of this process, by state: busy or waiting',
  ['state'],
);

const THREAD_FILE = join(__dirname, 'compute-thread.js');
/** Limits of one thread. */
const MEMORY = { maxOldGenerationSizeMb: 96, maxYoungGenerationSizeMb: 16, stackSizeMb: 4 };
const CLOSED = 'the threads of this process are being stopped';
/** A thread without work ends after this time, because of its memory. */
const IDLE_MS = 30_000;
/** Maximum time for a thread to start, on a very busy machine. */
const START_MS = 60_000;
/** How often the CPU time of a piece of work is read, in ms. */
const CHECK_MS = 50;
/** How much longer than its CPU time a piece of work may take. */
const MAX_SLOWNESS = 10;
/** Part of the time that the work of one tenant may take in this process. */
const COMPUTE_TIME_SHARE = 0.25;
/** Time in ms that a tenant may take at once before its share counts: honest checks take a few milliseconds each. */
const BURST_MS = 500;

/**
 * Runs work that takes more than linear time on tenants' input (JSON schemas with their patterns) in threads. A thread is terminated when
 * the time is over. A tenant gets at most all threads but one, and a share of the time: its work would otherwise keep a core busy. Waiting
 * tenants take turns. Threads start with the first work and end when there is none.
 */
export class ComputePool {
  private threads: Piscina | undefined;
  /** By tenant, in the order in which the tenants are served. */
  private readonly waiting = new Map<string, WaitingWork[]>();
  private readonly inFlight = new Map<string, number>();
  private readonly shares = new TimeShares({ share: COMPUTE_TIME_SHARE, burstMs: BURST_MS });
  /** Runs when the first of the tenants that have taken too much time may continue. */
  private timer: NodeJS.Timeout | undefined;
  private busy = 0;
  private isClosed = false;

  constructor(private readonly options: ComputeOptions) {
    const { metrics } = options;
    metrics?.onScrape(async () => {
      const waiting = [...this.waiting.values()].reduce((sum, line) => sum + line.length, 0);
      metrics.get(JOBS).set({ state: 'busy' }, this.busy);
      metrics.get(JOBS).set({ state: 'waiting' }, waiting);
    });
  }

  /** Ends the threads. Running work is refused. */
  async close(): Promise<void> {
    this.isClosed = true;
    const left = [...this.waiting.values()].flat();
    this.waiting.clear();
    clearTimeout(this.timer);
    for (const { reject } of left) reject(new Error(CLOSED));
    await this.threads?.destroy();
  }

  /** Why it is not a JSON schema; undefined if it is one. Rejects with ComputeRefused. */
  async schemaProblem(tenantId: string, schema: object): Promise<string | undefined> {
    return (await this.run(tenantId, { kind: 'compile', schema: JSON.stringify(schema) })).problem;
  }

  /**
   * The faults of a value, with the path of each field; undefined if there are none, or if the schema is invalid.
   * @param value as JSON
   * @throws ComputeRefused
   */
  async check(tenantId: string, schema: object, value: string): Promise<string | undefined> {
    return (await this.run(tenantId, { kind: 'check', schema: JSON.stringify(schema), value })).problem;
  }

  private run(tenantId: string, work: Work): Promise<WorkResult> {
    if (this.isClosed) return Promise.reject(new Error(CLOSED));
    return new Promise((resolve, reject) => {
      const line = this.waiting.get(tenantId) ?? [];
      if (line.length >= MAX_WAITING) {
        reject(this.refusal('computeWaiting', `waits behind ${MAX_WAITING} others of this tenant`));
        return;
      }
      line.push({ tenantId, work, resolve, reject });
      this.waiting.set(tenantId, line);
      this.next();
    });
  }

  /** Start waiting work while a thread is free. */
  private readonly next = (): void => {
    while (this.busy < this.options.threads) {
      const next = this.takeNext();
      if (!next) return;
      void this.serve(next);
    }
  };

  /** The first work of the next tenant that may have a thread now. The tenant then goes to the end of the line. */
  private takeNext(): WaitingWork | undefined {
    let pauseMs = Infinity;
    for (const [tenantId, line] of this.waiting) {
      if ((this.inFlight.get(tenantId) ?? 0) >= this.options.threads - 1) continue;
      const waitMs = this.shares.waitMs(tenantId);
      pauseMs = Math.min(pauseMs, waitMs);
      if (waitMs > 0) continue;
      const first = line.shift();
      this.waiting.delete(tenantId);
      if (line.length > 0) this.waiting.set(tenantId, line);
      if (first) return first;
    }
    clearTimeout(this.timer);
    if (pauseMs < Infinity) this.timer = setTimeout(this.next, pauseMs).unref();
    return undefined;
  }

  private async serve({ tenantId, work, resolve, reject }: WaitingWork): Promise<void> {
    this.busy += 1;
    this.inFlight.set(tenantId, (this.inFlight.get(tenantId) ?? 0) + 1);
    const beganAt = performance.now();
    // Work that fails has most often used up its time.
    let tookMs: number | undefined;
    try {
      const result = await this.compute(work);
      tookMs = result.tookMs;
      resolve(result);
    } catch (error) {
      reject(error as Error);
    } finally {
      this.shares.use(tenantId, Math.min(tookMs ?? performance.now() - beganAt, this.options.timeoutMs));
      this.busy -= 1;
      const left = (this.inFlight.get(tenantId) ?? 1) - 1;
      if (left > 0) this.inFlight.set(tenantId, left);
      else this.inFlight.delete(tenantId);
      this.next();
    }
  }

  private async compute(work: Work): Promise<WorkResult> {
    this.threads ??= startThreads(this.options.threads);
    const started = new Int32Array(new SharedArrayBuffer(8));
    const deadline = new Deadline(started, this.options.timeoutMs);
    try {
      return (await this.threads.run({ work, started }, { signal: deadline.signal })) as WorkResult;
    } catch (error) {
      if (deadline.signal.aborted) {
        throw this.refusal('computeTime', `takes longer than ${this.options.timeoutMs} ms`);
      }
      if ((error as NodeJS.ErrnoException).code === 'ERR_WORKER_OUT_OF_MEMORY') {
        throw this.refusal('computeMemory', `takes more than ${MEMORY.maxOldGenerationSizeMb} MB of memory`);
      }
      // A schema that refers to itself without end.
      if ((error as Error).name === 'RangeError') {
        throw this.refusal('computeMemory', 'takes more stack than is available');
      }
      throw error;
    } finally {
      deadline.clear();
    }
  }

  private refusal(limit: ComputeRefused['limit'], message: string): ComputeRefused {
    this.options.metrics?.limitExceeded.inc({ limit });
    return new ComputeRefused(limit, message);
  }
}

/**
 * Aborts when work that has begun takes too long. What counts is the CPU time of its thread: on a machine that is busy with
 * other things, work would otherwise be refused that has hardly run. The start of the thread does not count.
 */
class Deadline {
  private readonly controller = new AbortController();
  private timer: NodeJS.Timeout;
  private readonly asked = performance.now();
  /** Set at the first check after the work has begun. */
  private begun: { at: number; cpuMs: number | undefined } | undefined;

  /** @param started see `compute` in compute-thread.ts */
  constructor(
    private readonly started: Int32Array,
    private readonly timeoutMs: number,
  ) {
    this.timer = setTimeout(this.check, CHECK_MS);
  }

  private readonly check = (): void => {
    if (this.isOver()) this.controller.abort();
    else this.timer = setTimeout(this.check, CHECK_MS);
  };

  private isOver(): boolean {
    const now = performance.now();
    if (Atomics.load(this.started, 0) === 0) return now - this.asked > START_MS;
    const cpuMs = cpuTimeOf(Atomics.load(this.started, 1));
    this.begun ??= { at: now, cpuMs };
    const tookMs = now - this.begun.at;
    if (cpuMs === undefined || this.begun.cpuMs === undefined) return tookMs > this.timeoutMs;
    return cpuMs - this.begun.cpuMs >= this.timeoutMs || tookMs > MAX_SLOWNESS * this.timeoutMs;
  }

  get signal(): AbortSignal {
    return this.controller.signal;
  }

  clear(): void {
    clearTimeout(this.timer);
  }
}

/** CPU time of a thread of this process so far, in milliseconds; undefined where only the clock is known. */
function cpuTimeOf(thread: number): number | undefined {
  if (thread === 0) return undefined;
  try {
    // proc(5): the fields behind the name, which may contain blanks, are `state`, …, utime (12th) and stime, in 1/100 s.
    const line = readFileSync(`/proc/self/task/${String(thread)}/stat`, 'latin1');
    const fields = line.slice(line.lastIndexOf(') ') + 2).split(' ');
    return (Number(fields[11]) + Number(fields[12])) * 10;
  } catch {
    return undefined;
  }
}

function startThreads(maxThreads: number): Piscina {
  const threads = new Piscina({
    filename: THREAD_FILE,
    minThreads: 0,
    maxThreads,
    idleTimeout: IDLE_MS,
    resourceLimits: MEMORY,
    concurrentTasksPerWorker: 1,
    recordTiming: false,
    // No variable of this process's environment: it contains the platform's keys.
    env: {},
    execArgv: [],
  });
  // A thread that dies without work: the next work starts another.
  threads.on('error', () => undefined);
  return threads;
}
