import { setTimeout as delay } from 'node:timers/promises';
import { AgentProcess, type ProcessOptions, type TurnIds } from './agent-process.js';
import { type ErrorDetail, type LoadFault, type TurnRequest, AgentError } from './protocol.js';
import type { TurnPorts, TurnStream } from './executor-turn.js';

export interface PoolOptions extends ProcessOptions {
  /** Absolute path of the agent's folder, and the module inside it. */
  folder: string;
  module: string | undefined;
  /** Number of processes that share the agent's turns. */
  maxProcesses: number;
  /** Time to keep a process without turns. */
  idleMs: number;
}

/** Maximum processes beyond `maxProcesses`: retired ones that finish their turns, and unresponsive ones. */
const MAX_EXTRA = 2;
/** Maximum concurrent turns with a process of their own. */
const MAX_ALONE = 2;
const BACKOFF_MS = 100;
const MAX_BACKOFF_MS = 5_000;
/** A process that ran for this long resets the backoff. */
const STEADY_MS = 10_000;

/** The processes of one agent in this worker. The first turn starts the first process. */
export class AgentPool {
  private readonly processes = new Set<AgentProcess>();
  /** Processes that run several turns at a time. */
  private readonly shared = new Set<AgentProcess>();
  private readonly timer: NodeJS.Timeout;
  private alone = 0;
  private readonly waiting = new Set<() => void>();
  private failures = 0;
  private startAfter = 0;
  private loadError: ErrorDetail | undefined;

  constructor(private readonly options: PoolOptions) {
    this.timer = setInterval(() => this.endIdle(), Math.min(options.idleMs, 10_000));
    this.timer.unref();
  }

  /**
   * Starts a turn.
   * @param ids with `alone`: use a process of its own
   * @param ports what the turn may use of the worker
   * @returns undefined if `signal` aborted before a process was free
   * @throws AgentError if the agent's module failed to load a moment ago
   */
  async open(
    request: TurnRequest,
    { alone, ...ids }: TurnIds & { alone: boolean },
    ports: TurnPorts,
    signal: AbortSignal,
  ): Promise<TurnStream | undefined> {
    const process = alone ? await this.startAlone(signal) : await this.choose(signal);
    const stream = process?.open(request, ids, ports);
    // The process ends with its only turn.
    if (alone) process?.retire();
    return stream;
  }

  /**
   * Starts a process before the first turn needs it.
   * @returns why the agent's module could not be loaded; undefined if it is loaded
   */
  warmUp(): Promise<LoadFault | undefined> {
    const process = this.begin();
    this.share(process);
    return process.loaded.then(
      (error) => error && (error.fault ?? { file: '', reason: error.message }),
      (error: unknown) => ({
        file: this.options.module ?? '',
        reason: `could not be loaded: ${error instanceof Error ? error.message : String(error)}`,
      }),
    );
  }

  /** Ends each process after its last turn. */
  retire(): void {
    clearInterval(this.timer);
    for (const process of this.processes) process.retire();
  }

  /** Ends every process now. */
  async close(): Promise<void> {
    clearInterval(this.timer);
    const all = [...this.processes];
    for (const process of all) process.kill('The worker has stopped');
    await Promise.all(all.map(({ ended }) => ended));
  }

  /** The process with the fewest turns, or a new one below the limit. */
  private async choose(signal: AbortSignal): Promise<AgentProcess | undefined> {
    const open = [...this.shared].filter(({ isOpen }) => isOpen);
    const able = open.filter(({ isResponsive }) => isResponsive);
    const [least] = able.sort((a, b) => a.inFlight - b.inFlight);
    if (least && (least.inFlight === 0 || able.length >= this.options.maxProcesses)) return least;
    const mayStart = this.shared.size < this.options.maxProcesses + MAX_EXTRA;
    if (!mayStart) return least ?? open[0] ?? this.start(signal);
    return this.start(signal);
  }

  private async start(signal: AbortSignal): Promise<AgentProcess | undefined> {
    const pause = this.startAfter - performance.now();
    if (pause > 0) {
      if (this.loadError) throw new AgentError(this.loadError);
      await delay(pause, undefined, { signal }).catch(() => undefined);
      if (signal.aborted) return undefined;
      // Another waiting turn may have started a process.
      const [started] = [...this.shared].filter(({ isOpen }) => isOpen);
      if (started) return started;
    }
    const process = this.begin();
    this.share(process);
    return process;
  }

  private share(process: AgentProcess): void {
    this.shared.add(process);
    void process.ended.then(() => this.shared.delete(process));
  }

  private async startAlone(signal: AbortSignal): Promise<AgentProcess | undefined> {
    while (this.alone >= MAX_ALONE && !signal.aborted) await this.nextFree(signal);
    if (signal.aborted) return undefined;
    this.alone += 1;
    const process = this.begin();
    void process.ended.then(() => {
      this.alone -= 1;
      for (const wake of this.waiting) wake();
    });
    return process;
  }

  private nextFree(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const wake = (): void => {
        this.waiting.delete(wake);
        signal.removeEventListener('abort', wake);
        resolve();
      };
      this.waiting.add(wake);
      signal.addEventListener('abort', wake);
    });
  }

  private begin(): AgentProcess {
    const { folder, module } = this.options;
    const process = new AgentProcess(this.options);
    const begunAt = performance.now();
    this.processes.add(process);
    process.load(folder, module).then(
      (error) => this.onLoaded(process, error),
      // `ended` reports the same.
      () => undefined,
    );
    void process.ended.then(() => {
      this.processes.delete(process);
      if (performance.now() - begunAt > STEADY_MS) this.failures = 0;
      if (process.hasCrashed) this.onFailure();
    });
    return process;
  }

  private onLoaded(process: AgentProcess, error: ErrorDetail | undefined): void {
    this.loadError = error;
    if (!error) return;
    this.options.logger.error(error.message, { agent: this.options.agent });
    this.onFailure();
    process.kill('The module of the agent could not be loaded');
  }

  private onFailure(): void {
    const pause = Math.min(BACKOFF_MS * 2 ** this.failures, MAX_BACKOFF_MS);
    this.failures = Math.min(this.failures + 1, 10);
    this.startAfter = performance.now() + pause;
  }

  private endIdle(): void {
    for (const process of this.processes) {
      if (process.idleMs > this.options.idleMs) process.kill('The process was idle');
    }
  }
}
