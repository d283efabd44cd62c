import type { Logger } from '@baton/telemetry';
import { AgentChild, type ChildListener, type ChildOptions } from './agent-child.js';
import { type ErrorDetail, type FromAgent, type TurnRequest, cut } from './protocol.js';
import { AgentCrash, AgentError } from './run-failure.js';
import { TurnStream } from './turn-stream.js';

/** How a process is started and held to its limits. */
export interface ProcessOptions extends ChildOptions {
  /** The agent's slug, for the log. */
  agent: string;
  /** How long it may give no sign of life. */
  stallMs: number;
  logger: Logger;
}

/** Whose turn it is; stands in the log lines of its console. */
export interface TurnIds {
  tenantId: string;
  taskId: string;
  runId: string;
}

/** What a process may use besides its heap: buffers, code, threads. */
const NATIVE_MB = 256;
/** What an empty one uses. */
const BARE_MB = 48;
const MAX_TICK_MS = 1_000;
/** A process that has not answered for so long gets no new turns while another can. */
const UNRESPONSIVE_MS = 2_000;
/** How long a process may take to start, where that is longer than it may stand still. */
const START_MS = 30_000;
/** What an executor may still do when its process is about to end. */
const WIND_UP_MS = 2_000;
const MAX_TAIL = 16_000;
const MAX_KNOWN_TURNS = 1_000;

/**
 * A child process that runs the turns of one agent. Whatever the agent's code does there, this process goes on: an
 * error that nobody catches fails the turn whose it is; a process that dies, stands still or uses too much memory
 * is ended, and its turns end with `AgentCrash`. It ends with this process, also by `kill -9`.
 */
export class AgentProcess implements ChildListener {
  /** Resolves when the process is gone, with the words for why; its turns have ended by then. */
  readonly ended: Promise<string>;
  private readonly child: AgentChild;
  private readonly streams = new Map<number, TurnStream>();
  private readonly turns = new Map<number, TurnIds>();
  private readonly timer: NodeJS.Timeout;
  private onLoaded: ((error: ErrorDetail | undefined) => void) | undefined;
  private lastTurn = 0;
  private pingedAt: number | undefined;
  private hasSpoken = false;
  private tickedAt = performance.now();
  private usedAt = performance.now();
  private retired = false;
  private endReason: string | undefined;
  private gone = false;
  private crashed = false;
  private tail = '';

  constructor(private readonly options: ProcessOptions) {
    this.child = new AgentChild(options, this);
    this.ended = this.child.exited.then((how) => this.onGone(how));
    const tickMs = Math.min(MAX_TICK_MS, options.stallMs / 4);
    this.timer = setInterval(() => void this.tick(tickMs), tickMs);
    this.timer.unref();
  }

  /** Load an agent's module. Resolves with what is wrong with it, if anything; rejects if the process dies of it. */
  async load(folder: string, module: string | undefined): Promise<ErrorDetail | undefined> {
    const loaded = new Promise<ErrorDetail | undefined>((resolve) => (this.onLoaded = resolve));
    this.child.send({ type: 'load', folder, module });
    const died = this.ended.then((reason) => {
      throw new Error(reason);
    });
    const error = await Promise.race([loaded, died]);
    if (error) for (const stream of this.streams.values()) stream.fail(new AgentError(error));
    return error;
  }

  /** Begin a turn. */
  open(request: TurnRequest, ids: TurnIds): TurnStream {
    const turn = ++this.lastTurn;
    const stream = new TurnStream(turn, (message) => this.child.send(message));
    this.streams.set(turn, stream);
    this.turns.set(turn, ids);
    for (const known of this.turns.keys()) {
      if (this.turns.size <= MAX_KNOWN_TURNS) break;
      this.turns.delete(known);
    }
    this.child.send({ type: 'turn', turn, request });
    // It is gone, and nobody has noticed yet.
    if (this.gone) stream.fail(this.crash(this.endReason ?? '', false));
    return stream;
  }

  /** Turns that somebody listens to. */
  get inFlight(): number {
    let count = 0;
    for (const stream of this.streams.values()) if (!stream.isOver) count += 1;
    return count;
  }

  /** It takes new turns. */
  get isOpen(): boolean {
    return !this.gone && !this.retired && this.endReason === undefined;
  }

  get isResponsive(): boolean {
    return !this.hasSpoken || this.silentMs < UNRESPONSIVE_MS;
  }

  /** It was not this process that ended it. */
  get hasCrashed(): boolean {
    return this.crashed;
  }

  /** For how long it has had nothing to do, in ms. */
  get idleMs(): number {
    return this.inFlight > 0 ? 0 : performance.now() - this.usedAt;
  }

  /** No new turns: it ends when the last one has. */
  retire(): void {
    this.retired = true;
    this.endIfDone();
  }

  /** End it now. */
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

  /** What others have written in this process is not part of it: it may be another tenant's. */
  private crash(reason: string, hadCompany: boolean, output: string[] = []): AgentCrash {
    return new AgentCrash(reason, { name: 'AgentCrash', message: reason, output }, hadCompany);
  }

  onUnreadable(reason: string): void {
    this.kill(`The agent's process sent what can not be read: ${reason}`);
  }

  /** What was not written by JavaScript, or past the console: it belongs to no turn. */
  onText(text: string): void {
    this.tail = (this.tail + text).slice(-MAX_TAIL);
    this.log('info', 'agent wrote', null, { text: cut(text, 4_000) });
  }

  onMessage(message: FromAgent): void {
    // Whatever it is, it lives.
    this.pingedAt = undefined;
    this.hasSpoken = true;
    switch (message.type) {
      case 'loaded':
        this.onLoaded?.(message.error);
        return;
      case 'events':
        this.streams.get(message.turn)?.events(message);
        return;
      case 'finished':
        this.streams.get(message.turn)?.end();
        return;
      case 'returned':
        this.onReturned(message.turn, message.error);
        return;
      case 'uncaught':
        this.onUncaught(message.turn, message.error);
        return;
      case 'cancel-failed':
        this.log('warn', 'cancelTask of the executor failed', message.turn, { error: message.error });
        return;
      case 'line':
        if (message.turn !== null) this.streams.get(message.turn)?.line(message.text);
        this.log('info', 'agent wrote', message.turn, { text: message.text });
    }
  }

  private onReturned(turn: number, error?: ErrorDetail): void {
    const stream = this.streams.get(turn);
    if (!stream) return;
    this.streams.delete(turn);
    this.usedAt = performance.now();
    if (error && stream.isOver && !stream.hasFailed) {
      this.log('warn', 'executor threw after the end of its turn', turn, { error });
    }
    stream.returned(error);
    this.endIfDone();
  }

  /** The turn whose error it is fails. After it the process can't be trusted: it ends when the other turns have. */
  private onUncaught(turn: number | null, error: ErrorDetail): void {
    const open = [...this.streams.values()].filter((stream) => !stream.isOver);
    const [only] = open;
    const guilty = turn === null ? (open.length === 1 ? only : undefined) : this.streams.get(turn);
    this.log('error', 'agent threw an error that nobody caught', guilty?.turn ?? turn, { error });
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
    const late = now - this.tickedAt - everyMs;
    this.tickedAt = now;
    // This process itself stood still: what the other has said meanwhile is still to be read.
    if (late > everyMs) this.pingedAt &&= now;
    if (this.pingedAt === undefined) {
      this.pingedAt = now;
      this.child.send({ type: 'ping' });
    }
    const usedMb = await this.child.residentMb();
    // Only now: what was waiting to be read is read by now.
    const { memoryMb } = this.options;
    const stallMs = this.hasSpoken ? this.options.stallMs : Math.max(this.options.stallMs, START_MS);
    const isStalled = this.silentMs > stallMs;
    // A process that stands still with a full heap does so because it looks for memory.
    if (usedMb > memoryMb + (isStalled ? BARE_MB : NATIVE_MB)) this.kill(outOfMemory(memoryMb));
    else if (isStalled) {
      this.kill(`The agent did not answer for ${stallMs / 1000} s, and its process was ended`);
    }
  }

  /** For how long it has not answered, in ms. */
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
