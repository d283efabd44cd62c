import { messageOf } from '@baton/telemetry';
import { setTimeout as delay } from 'node:timers/promises';
import { AgentProcess, type ProcessOptions, type TurnIds } from './agent-process.js';
import type { AgentErrorDetail, CodeFolder, DeclaredTool, LoadFault, TurnRequest } from './protocol.js';
import { AgentCrash } from './agent-crash.js';
import { AgentError } from './agent-error.js';
import type { TurnPorts, TurnStream } from './turn-stream.js';
import type { ProcessSlots, Slot } from './process-slots.js';

export interface PoolOptions extends ProcessOptions {
  code: CodeFolder;
  /** Number of processes that share the agent's turns. */
  maxProcesses: number;
  /** Time to keep a process without turns. */
  idleMs: number;
  /** If the processes serve one tenant: the tenant, and the slots for such processes in this worker. */
  isolated?: { tenantId: string; slots: ProcessSlots } | undefined;
  /** Called when the last process has ended, and no turn waits for one. */
  onEmpty?: (() => void) | undefined;
}

/** The start of a process for which turns wait. */
interface PendingStart {
  process: Promise<AgentProcess | undefined>;
  /** Number of turns that wait for it. */
  turns: number;
  abort: AbortController;
}

/** Maximum processes beyond `maxProcesses`: retired ones that finish their turns, and unresponsive ones. */
const MAX_EXTRA = 2;
/** Maximum concurrent turns with a process of their own. */
const MAX_ALONE = 2;
/** The pause before a process starts again. It doubles with each failure: code that fails while it loads must not take the CPU. */
const BACKOFF_MS = 100;
/** Mended code is tried within seconds. */
const MAX_BACKOFF_MS = 5_000;
/** A process that ran for this long resets the backoff. */
const STEADY_MS = 10_000;

/** The processes of one agent in this worker, for all tenants or for one. The first turn starts the first process. */
export class AgentPool {
  private readonly processes = new Set<AgentProcess>();
  /** Processes that run several turns at a time. */
  private readonly shared = new Set<AgentProcess>();
  private readonly timer: NodeJS.Timeout;
  private alone = 0;
  private readonly waiting = new Set<() => void>();
  private failures = 0;
  private startAfter = 0;
  private loadError: AgentErrorDetail | undefined;
  private declared: readonly DeclaredTool[] | undefined;
  private pending: PendingStart | undefined;
  /** Turns that are about to begin. */
  private opening = 0;

  constructor(private readonly options: PoolOptions) {
    this.timer = setInterval(() => this.endIdle(), Math.min(options.idleMs, 10_000));
    this.timer.unref();
  }

  /**
   * Starts a turn.
   * @param ids with `alone`: use a process of its own
   * @param ports the functions of the worker that the turn may call
   * @returns undefined if `signal` aborted before a process was free
   * @throws AgentError if the agent's module failed to load a moment ago
   */
  async open(
    request: TurnRequest,
    { alone, ...ids }: TurnIds & { alone: boolean },
    ports: TurnPorts,
    signal: AbortSignal,
  ): Promise<TurnStream | undefined> {
    this.opening += 1;
    try {
      let process = alone ? await this.startAlone(signal) : await this.choose(signal);
      // The process was ended a moment ago, because another tenant waits for its slot.
      while (process && !process.isOpen) process = await this.choose(signal);
      const stream = process?.open(request, ids, ports);
      // The process ends with its only turn.
      if (alone) process?.retire();
      return stream;
    } finally {
      this.opening -= 1;
      this.reportEmpty();
    }
  }

  /**
   * The functions that the code declares for a model. Starts a process if none has reported them yet.
   * @throws AgentError if the code cannot be loaded, AgentCrash if its process ends; the reason of `signal`
   */
  async tools(signal: AbortSignal): Promise<readonly DeclaredTool[]> {
    if (this.declared) return this.declared;
    this.opening += 1;
    try {
      const process = await this.choose(signal);
      signal.throwIfAborted();
      if (!process) throw new Error('no process of the agent is free');
      const error = await process.loaded.catch((died: unknown) => {
        const message = messageOf(died);
        throw new AgentCrash(message, { name: 'AgentCrash', message }, false);
      });
      if (error) throw new AgentError(error);
      return (this.declared = process.tools);
    } finally {
      this.opening -= 1;
      this.reportEmpty();
    }
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
        file: this.options.code.module ?? '',
        reason: `could not be loaded: ${messageOf(error)}`,
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
    const { maxProcesses, isolated } = this.options;
    const mayStart = this.shared.size < maxProcesses + MAX_EXTRA && !(least && isolated?.slots.isFull);
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
    if (this.options.isolated) return this.startInSlot(this.options.isolated, signal);
    return this.share(this.begin());
  }

  /** All turns that need a process wait for the same slot. */
  private async startInSlot(
    { tenantId, slots }: NonNullable<PoolOptions['isolated']>,
    signal: AbortSignal,
  ): Promise<AgentProcess | undefined> {
    const abort = new AbortController();
    const begin = async (): Promise<AgentProcess | undefined> => {
      const slot = await slots.take(tenantId, abort.signal);
      if (slot) this.pending = undefined;
      return slot && this.share(this.begin(slot));
    };
    const pending = (this.pending ??= { process: begin(), turns: 0, abort });
    pending.turns += 1;
    const process = await Promise.race([pending.process, whenAborted(signal)]);
    pending.turns -= 1;
    if (!process && pending.turns === 0) this.giveUp(pending);
    return process;
  }

  /** The turns that have waited were canceled. */
  private giveUp({ process, abort }: PendingStart): void {
    this.pending = undefined;
    abort.abort();
    void process.then((started) => {
      if (started && !started.hasBegun) started.retire();
    });
  }

  private share(process: AgentProcess): AgentProcess {
    this.shared.add(process);
    void process.ended.then(() => this.shared.delete(process));
    return process;
  }

  private async startAlone(signal: AbortSignal): Promise<AgentProcess | undefined> {
    while (this.alone >= MAX_ALONE && !signal.aborted) await this.nextFree(signal);
    if (signal.aborted) return undefined;
    this.alone += 1;
    const { isolated } = this.options;
    const slot = await isolated?.slots.take(isolated.tenantId, signal);
    if (isolated && !slot) {
      this.alone -= 1;
      return undefined;
    }
    const process = this.begin(slot);
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

  private begin(slot?: Slot): AgentProcess {
    const process = new AgentProcess(this.options);
    const begunAt = performance.now();
    this.processes.add(process);
    slot?.hold(process);
    process.load(this.options.code).then(
      (error) => this.onLoaded(process, error),
      // `ended` reports the same.
      () => undefined,
    );
    void process.ended.then(() => {
      this.processes.delete(process);
      if (performance.now() - begunAt > STEADY_MS) this.failures = 0;
      if (process.hasCrashed) this.onFailure();
      this.reportEmpty();
    });
    return process;
  }

  private reportEmpty(): void {
    if (this.processes.size === 0 && this.opening === 0) this.options.onEmpty?.();
  }

  private onLoaded(process: AgentProcess, error: AgentErrorDetail | undefined): void {
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

const whenAborted = (signal: AbortSignal): Promise<undefined> =>
  new Promise((resolve) => {
    if (signal.aborted) resolve(undefined);
    else signal.addEventListener('abort', () => resolve(undefined), { once: true });
  });
