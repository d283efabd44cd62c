import type { Logger } from '@baton/telemetry';
import { AgentChild, type ChildListener, type ChildOptions } from './agent-child.js';
import {
  type AgentErrorDetail,
  type CodeFolder,
  type DeclaredTool,
  type FromAgent,
  type LoadFault,
  type TurnRequest,
  cut,
} from './protocol.js';
import { AgentCrash } from './agent-crash.js';
import { AgentError } from './agent-error.js';
import { type TurnPorts, TurnStream } from './turn-stream.js';

/** How to start a process, and its limits. */
export interface ProcessOptions extends ChildOptions {
  /** The agent's slug, for log lines. */
  agent: string;
  /** Maximum time without a response. */
  stallMs: number;
  /** Maximum time in which the module loads, in ms. */
  loadMs: number;
  logger: Logger;
  /** Called with each line that the agent's code writes. */
  onLine?: ((text: string) => void) | undefined;
  /** Called when a turn has ended. */
  onTurnEnd?: (() => void) | undefined;
}

/** Why a module could not be loaded, and where the fault is, if that is known. */
export type ModuleError = AgentErrorDetail & { fault?: LoadFault | undefined };

/** The ids of a turn, for its log lines. */
export interface TurnIds {
  tenantId: string;
  taskId: string;
  runId: string;
}

/** Memory that a process may use beside its heap: buffers, code, threads. */
const NATIVE_MB = 256;
/** Memory that an empty process uses. */
const BARE_MB = 48;
/** Memory and a stall are checked this often at least. */
const MAX_TICK_MS = 1_000;
/** A process that has not answered for this long gets new turns only if no other process can take them. */
const UNRESPONSIVE_MS = 2_000;
/** Minimum time that a process has to start, also if `stallMs` is shorter. */
const START_MS = 30_000;
/** Time that executors have after their turns before a retired process ends. */
const WIND_UP_MS = 2_000;
/** Characters of what a process has written last: enough for a stack. */
const MAX_TAIL = 16_000;
/** Unread events of a turn, in characters of messages, beside one large event: eight times `WINDOW`, as tiny events each have a message. */
const MAX_UNREAD = 8_388_608;
/** Turns whose ids are kept for console lines that come late: the newest. */
const MAX_KNOWN_TURNS = 1_000;

/**
 * A child process that runs the turns of one agent. The agent's code cannot harm the worker. An uncaught error fails
 * its own turn. A process that dies, stalls or uses too much memory is killed, and its turns fail with `AgentCrash`.
 * The child ends with the worker, also after `kill -9`.
 */
export class AgentProcess implements ChildListener {
  /** Resolves with the reason when the process has ended and its turns have failed. */
  readonly ended: Promise<string>;
  /** As `load` resolves or rejects. */
  loaded: Promise<ModuleError | undefined> = Promise.resolve(undefined);
  /** The functions that its code declares for a model, once it is loaded. */
  tools: DeclaredTool[] = [];
  /** Whether the process was killed because its module did not finish loading. */
  isLoadTooLong = false;
  private readonly child: AgentChild;
  private readonly streams = new Map<number, TurnStream>();
  private readonly turns = new Map<number, TurnIds>();
  private readonly timer: NodeJS.Timeout;
  private onLoaded: ((error: AgentErrorDetail | undefined, fault: LoadFault | undefined) => void) | undefined;
  private lastTurn = 0;
  private pingedAt: number | undefined;
  private hasSpoken = false;
  /** How long its module has been loading, in ms. */
  private loadingMs: number | undefined;
  private tickedAt = performance.now();
  private usedAt = performance.now();
  private retired = false;
  private endReason: string | undefined;
  private gone = false;
  private crashed = false;
  private tail = '';
  /** Events of turns that have returned, in characters. The library sends none. */
  private straySize = 0;

  constructor(private readonly options: ProcessOptions) {
    this.child = new AgentChild(options, this);
    this.ended = this.child.exited.then((how) => this.onGone(how));
    const tickMs = Math.min(MAX_TICK_MS, options.stallMs / 4);
    this.timer = setInterval(() => void this.tick(tickMs), tickMs);
    this.timer.unref();
  }

  /**
   * Loads an agent's module. Resolves with the error of the module, if any, and where it is. Rejects if the process dies, or
   * if the module takes too long: then it kills the process.
   */
  load(code: CodeFolder): Promise<ModuleError | undefined> {
    this.loaded = this.loadModule(code);
    return this.loaded;
  }

  private async loadModule(code: CodeFolder): Promise<ModuleError | undefined> {
    const loaded = new Promise<ModuleError | undefined>((resolve) => {
      this.onLoaded = (error, fault) => resolve(error && { ...error, fault });
    });
    this.child.send({ type: 'load', code });
    const died = this.ended.then((reason) => {
      throw new Error(reason);
    });
    this.loadingMs = 0;
    const error = await Promise.race([loaded, died]).finally(() => (this.loadingMs = undefined));
    if (error) for (const stream of this.streams.values()) stream.fail(new AgentError(error));
    return error;
  }

  /** Starts a turn. */
  open(request: TurnRequest, ids: TurnIds, ports: TurnPorts): TurnStream {
    const turn = ++this.lastTurn;
    const stream = new TurnStream(turn, (message) => this.child.send(message), ports);
    this.streams.set(turn, stream);
    this.turns.set(turn, ids);
    for (const known of this.turns.keys()) {
      if (this.turns.size <= MAX_KNOWN_TURNS) break;
      this.turns.delete(known);
    }
    this.child.send({ type: 'turn', turn, request });
    // The process has ended, and the event of it has not reached the caller yet.
    if (this.gone) stream.fail(this.crash(this.endReason ?? '', false));
    return stream;
  }

  /** Number of turns whose events are still read. */
  get inFlight(): number {
    let count = 0;
    for (const stream of this.streams.values()) if (!stream.isOver) count += 1;
    return count;
  }

  /** Whether it has had a turn. */
  get hasBegun(): boolean {
    return this.lastTurn > 0;
  }

  /** Whether it takes new turns. */
  get isOpen(): boolean {
    return !this.gone && !this.retired && this.endReason === undefined;
  }

  get isResponsive(): boolean {
    return !this.hasSpoken || this.silentMs < UNRESPONSIVE_MS;
  }

  /** Whether it ended by itself, or with turns in it. */
  get hasCrashed(): boolean {
    return this.crashed;
  }

  /** Time without turns, in ms. */
  get idleMs(): number {
    return this.inFlight > 0 ? 0 : performance.now() - this.usedAt;
  }

  /** Takes no new turns, and ends after the last one. */
  retire(): void {
    this.retired = true;
    this.endIfDone();
  }

  /** Ends the process now. */
  kill(reason: string): void {
    this.endReason ??= reason;
    this.child.kill();
  }

  private onGone(exit: string): string {
    this.gone = true;
    clearInterval(this.timer);
    const { memoryMb, agent, logger } = this.options;
    if (this.tail.includes('heap out of memory')) this.endReason = outOfMemory(memoryMb);
    const reason = (this.endReason ??= `The agent's process ${exit}`);
    const interrupted = [...this.streams.values()].filter((stream) => !stream.isOver);
    this.crashed = interrupted.length > 0 || reason.includes(exit);
    if (this.crashed) logger.error(reason, { agent, exit, turns: interrupted.length, output: this.tail });
    for (const stream of interrupted) stream.fail(this.crash(reason, this.streams.size > 1, stream.output));
    this.streams.clear();
    return reason;
  }

  /** Contains no console output of other turns: they may belong to another tenant. */
  private crash(reason: string, hadCompany: boolean, output: string[] = []): AgentCrash {
    return new AgentCrash(reason, { name: 'AgentCrash', message: reason, output }, hadCompany);
  }

  onUnreadable(reason: string): void {
    this.kill(`The agent's process sent an unreadable message: ${reason}`);
  }

  /** Output of native code, or output past the captured console. It belongs to no turn. */
  onText(text: string): void {
    this.tail = (this.tail + text).slice(-MAX_TAIL);
    this.log('info', 'agent wrote', null, { text: cut(text, 4_000) });
  }

  onMessage(message: FromAgent, size: number): void {
    // Every message is a heartbeat.
    this.pingedAt = undefined;
    this.hasSpoken = true;
    switch (message.type) {
      case 'loaded':
        this.tools = message.tools ?? [];
        this.onLoaded?.(message.error, message.fault);
        return;
      case 'events':
        this.onEvents(message, size);
        return;
      case 'step':
        this.streams.get(message.turn)?.step(message.step);
        return;
      case 'secret':
        this.streams.get(message.turn)?.secret(message);
        return;
      case 'finished':
        this.streams.get(message.turn)?.end();
        return;
      case 'returned':
        this.onReturned(message);
        return;
      case 'uncaught':
        this.onUncaught(message.turn, message.error);
        return;
      case 'cancel-failed':
        this.log('warn', 'cancelTask of the executor failed', message.turn, { error: message.error });
        return;
      case 'line':
        this.onLine(message);
    }
  }

  /** The library waits until events are read. Code that writes past it would fill the memory of this process. */
  private onEvents(message: Extract<FromAgent, { type: 'events' }>, size: number): void {
    const stream = this.streams.get(message.turn);
    if ((stream?.unread ?? this.straySize) + size > MAX_UNREAD + this.options.maxEventBytes) {
      this.kill('The agent sent events without waiting until they were read, and its process was ended');
      return;
    }
    if (stream) stream.events(message, size);
    else this.straySize += size;
  }

  private onLine({ turn, level, text }: Extract<FromAgent, { type: 'line' }>): void {
    const stream = turn === null ? undefined : this.streams.get(turn);
    // After the end of its turn a line has no task any more: only the log has it.
    const shown = stream?.line(level, text) ?? text;
    this.log('info', 'agent wrote', turn, { text: shown });
    this.options.onLine?.(shown);
  }

  private onReturned({ turn, error, parked, mismatch }: Extract<FromAgent, { type: 'returned' }>): void {
    const stream = this.streams.get(turn);
    if (!stream) return;
    this.streams.delete(turn);
    this.usedAt = performance.now();
    if (error && stream.isOver && !stream.hasFailed) {
      this.log('warn', 'executor threw after the end of its turn', turn, { error });
    }
    stream.returned(error, parked, mismatch);
    this.endIfDone();
    this.options.onTurnEnd?.();
  }

  /** Fails the turn of the error. The process is no longer reliable, so it ends after its other turns. */
  private onUncaught(turn: number | null, error: AgentErrorDetail): void {
    const open = [...this.streams.values()].filter((stream) => !stream.isOver);
    const [only] = open;
    const guilty = turn === null ? (open.length === 1 ? only : undefined) : this.streams.get(turn);
    this.log('error', 'uncaught error in agent', guilty?.turn ?? turn, { error });
    if (guilty && !guilty.isOver) guilty.fail(new AgentError({ ...error, output: guilty.output }));
    if (turn === null && open.length > 1) {
      this.kill('The agent stopped with an error that belongs to no turn');
      return;
    }
    this.retire();
  }

  private endIfDone(): void {
    if (!this.retired || this.gone || this.inFlight > 0) return;
    const end = (): void => this.kill('The process was replaced by a new one');
    if (this.streams.size === 0) end();
    else setTimeout(end, WIND_UP_MS).unref();
  }

  private async tick(everyMs: number): Promise<void> {
    const now = performance.now();
    const sinceLastTick = now - this.tickedAt;
    const late = sinceLastTick - everyMs;
    this.tickedAt = now;
    // This process itself was blocked, so answers of the child may still be unread.
    if (late > everyMs) this.pingedAt &&= now;
    if (this.pingedAt === undefined) {
      this.pingedAt = now;
      this.child.send({ type: 'ping' });
    }
    const usedMb = await this.child.residentMb();
    // Check the time only now: the await let this process read waiting messages.
    const { memoryMb } = this.options;
    const stallMs = this.hasSpoken ? this.options.stallMs : Math.max(this.options.stallMs, START_MS);
    const isStalled = this.silentMs > stallMs;
    // A stalled process with a full heap is collecting garbage: report the memory, not the stall.
    if (usedMb > memoryMb + (isStalled ? BARE_MB : NATIVE_MB)) this.kill(outOfMemory(memoryMb));
    else if (isStalled) {
      this.kill(`The agent did not answer for ${stallMs / 1000} s, and its process was ended`);
    }
    // Time in which this process was blocked does not count: the child may have been stopped as well.
    this.addLoadingTime(Math.min(sinceLastTick, 2 * everyMs));
  }

  private addLoadingTime(ms: number): void {
    if (this.loadingMs === undefined) return;
    this.loadingMs += ms;
    const { loadMs } = this.options;
    if (this.loadingMs <= loadMs) return;
    this.isLoadTooLong = true;
    this.kill(
      `The agent's module has not finished loading after ${loadMs / 1000} s: does it wait for something at its top level?`,
    );
  }

  /** Time since an unanswered ping, in ms. */
  private get silentMs(): number {
    return this.pingedAt === undefined ? 0 : performance.now() - this.pingedAt;
  }

  private log(level: 'info' | 'warn' | 'error', message: string, turn: number | null, fields: object): void {
    const ids = turn === null ? {} : this.turns.get(turn);
    this.options.logger[level](message, { agent: this.options.agent, ...ids, ...fields });
  }
}

const outOfMemory = (memoryMb: number): string =>
  `The agent used more memory than its limit of ${memoryMb} MiB, and its process was ended`;
