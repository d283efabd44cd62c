import type { AgentExecutor } from '@a2a-js/sdk/server';
import { readSync, writeSync } from 'node:fs';
import { Socket } from 'node:net';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import type { ConsoleLevel } from '../../../console-level.js';
import { HostedTurn, type TurnHost, currentTurn } from './hosted-turn.js';
import { type ExecutorFactory, loadExecutor } from './load-executor.js';
import { loadFaultOf } from './load-fault.js';
import { loadTools } from './load-tools.js';
import { ToolExecutor } from './tool-executor.js';
import { type CodeFolder, type FromAgent, type ToAgent, errorDetail, cut } from '../protocol.js';
import { FrameReader } from '../frame-reader.js';
import { FrameBatch } from '../frame-batch.js';

// The main module of an agent's process. It loads the agent's module and runs its turns. `AgentChild` starts it with
// these file descriptors and arguments.
const IN = 3;
const OUT = 4;
const [maxEventBytes = 0, memoryMb = 0] = process.argv.slice(2, 4).map(Number);

/** Frames come from the worker alone, which this process trusts. */
const MAX_FRAME = 1024 * 1024 * 1024;
/** Events that wait to be sent may take this share of the memory of the process, over all turns. The rest is for the agent's code. */
const SHARE_OF_MEMORY = 1 / 4;
/** Pause before another try while the pipe to the worker is full. */
const POLL_MS = 2;

/** Maximum time that a message waits while turns take the thread, in ms. */
const MAX_UNSENT_MS = 2;

/** The channel to the worker. A write blocks until the pipe has room, because the worker always reads. */
class Channel {
  private readonly frames = new FrameReader(MAX_FRAME);
  private readonly bytes = Buffer.allocUnsafe(64 * 1024);
  private readonly pause = new Int32Array(new SharedArrayBuffer(4));
  private readonly unsent = new FrameBatch();
  private unsentSince = 0;

  constructor(private readonly onMessage: (message: ToAgent) => void) {
    const socket = new Socket({ fd: IN, readable: true, writable: false });
    socket.on('data', (chunk: Buffer) => this.onInput(chunk));
    // The worker has ended.
    socket.on('close', endGroup);
  }

  /** Adds a message. It goes with `flush`, or at once if much waits. */
  add(json: string): void {
    if (this.unsent.isEmpty) this.unsentSince = performance.now();
    this.unsent.add(json);
    if (this.unsent.isFull) this.flush();
  }

  /** Sends messages that have waited too long. Call it before other code takes the thread. */
  flushIfLate(): void {
    if (!this.unsent.isEmpty && performance.now() - this.unsentSince > MAX_UNSENT_MS) this.flush();
  }

  /** Sends all messages together: the worker wakes up once, and stores them together. */
  flush(): void {
    if (this.unsent.isEmpty) return;
    const frames = this.unsent.take();
    for (let sent = 0; sent < frames.length;) {
      try {
        sent += writeSync(OUT, frames, sent);
      } catch (error) {
        if (!isBusy(error)) throw error;
        this.sleep();
      }
    }
  }

  /** Handles messages and blocks all other code while the condition holds. */
  block(mustWait: () => boolean): void {
    this.flush();
    while (mustWait()) {
      if (!this.readNow()) this.sleep();
      // Output that the messages caused. Nothing else sends it meanwhile.
      this.flush();
    }
  }

  private readNow(): boolean {
    try {
      const count = readSync(IN, this.bytes);
      if (count === 0) endGroup();
      this.onInput(Buffer.from(this.bytes.subarray(0, count)));
      return true;
    } catch (error) {
      if (!isBusy(error)) throw error;
      return false;
    }
  }

  private onInput(chunk: Buffer): void {
    for (const text of this.frames.push(chunk)) {
      // oxlint-disable-next-line no-restricted-properties -- the worker wrote it
      this.onMessage(JSON.parse(text) as ToAgent);
    }
  }

  private sleep(): void {
    Atomics.wait(this.pause, 0, 0, POLL_MS);
  }
}

/** Kills the process group: the process leads it, and the agent's children are in it. */
const endGroup = (): boolean => process.kill(-process.pid, 'SIGKILL');
const isBusy = (error: unknown): boolean => (error as NodeJS.ErrnoException).code === 'EAGAIN';

/** Characters of one line of the console: enough for a message with some data. */
const MAX_LINE = 4_000;
/** Maximum lines per second of a turn. Further lines are counted and dropped. */
const MAX_LINES = 200;
/** Maximum lines per second of the process: one turn cannot take all of it. */
const MAX_LINES_OF_ALL = 400;

/**
 * Captures standard output and standard error of the agent's code line by line, in the async context of the writer.
 * Long lines are cut, and lines above the rate limit are dropped.
 */
function captureConsole(onLine: (level: ConsoleLevel, text: string) => void): void {
  const all = new LineRate(MAX_LINES_OF_ALL);
  const outside = new LimitedLines(onLine, all);
  const ofTurns = new WeakMap<HostedTurn, LimitedLines>();
  // A turn that writes without end must not take the lines of others.
  const linesNow = (): LimitedLines => {
    const turn = currentTurn.getStore();
    if (!turn) return outside;
    const known = ofTurns.get(turn) ?? new LimitedLines(onLine, all);
    ofTurns.set(turn, known);
    return known;
  };
  // Both write to a stream that other functions of the console use too. They write before they return.
  let level: ConsoleLevel | undefined;
  for (const name of ['debug', 'warn'] as const) {
    const write = console[name].bind(console);
    console[name] = (...values: unknown[]): void => {
      level = name;
      try {
        write(...values);
      } finally {
        level = undefined;
      }
    };
  }
  for (const stream of [process.stdout, process.stderr]) {
    const usual = stream === process.stdout ? 'info' : 'error';
    stream.write = (chunk: Uint8Array | string, ...rest: unknown[]): boolean => {
      const text = typeof chunk === 'string' ? chunk : Buffer.from(chunk).toString('utf8');
      linesNow().add(level ?? usual, text);
      const callback = rest.find((value) => typeof value === 'function') as (() => void) | undefined;
      if (callback) queueMicrotask(callback);
      return true;
    };
  }
}

/** Counts lines by the second. */
class LineRate {
  private left = 0;
  private second = -1;

  constructor(private readonly max: number) {}

  /** Whether one more line is allowed now. */
  take(): boolean {
    const second = Math.floor(performance.now() / 1000);
    if (second !== this.second) this.left = this.max;
    this.second = second;
    return this.left-- > 0;
  }
}

class LimitedLines {
  private readonly own = new LineRate(MAX_LINES);
  private dropped = 0;

  constructor(
    private readonly onLine: (level: ConsoleLevel, text: string) => void,
    private readonly all: LineRate,
  ) {}

  /** An incomplete line counts as a line, because another turn may write next. */
  add(level: ConsoleLevel, text: string): void {
    for (const line of text.split('\n', MAX_LINES + 1)) if (line.trim() !== '') this.pass(level, line);
  }

  private pass(level: ConsoleLevel, line: string): void {
    if (!this.own.take() || !this.all.take()) {
      this.dropped += 1;
      return;
    }
    if (this.dropped > 0) this.onLine('warn', `(${this.dropped} more lines were dropped)`);
    this.dropped = 0;
    this.onLine(level, cut(line, MAX_LINE));
  }
}

/** All turns of this process. */
class Turns implements TurnHost {
  readonly maxEventBytes = maxEventBytes;
  private readonly channel = new Channel((message) => this.onMessage(message));
  private readonly turns = new Map<number, HostedTurn>();
  private readonly toFlush = new Set<HostedTurn>();
  private isScheduled = false;
  private factory: Promise<ExecutorFactory> | undefined;
  private loaded: ExecutorFactory | undefined;

  /** All turns share a quarter of the memory for events that wait. */
  get maxUnsentSize(): number {
    return (memoryMb * 1024 * 1024 * SHARE_OF_MEMORY) / Math.max(1, this.turns.size);
  }

  createExecutor(): AgentExecutor {
    if (!this.loaded) throw new Error('the module of the agent is not loaded');
    return this.loaded();
  }

  send(json: string): void {
    this.channel.add(json);
    this.scheduleFlush();
  }

  /** Sends a message at once: the agent's code may take the thread for long, or the process may end. */
  say(message: FromAgent): void {
    this.channel.add(JSON.stringify(message));
    this.channel.flush();
  }

  block(mustWait: () => boolean): void {
    this.channel.block(mustWait);
  }

  flushSoon(turn: HostedTurn): void {
    this.toFlush.add(turn);
    this.scheduleFlush();
  }

  onEnd({ turn }: HostedTurn): void {
    this.turns.delete(turn);
  }

  /** All frames of the turns of this process in one turn of the event loop go in one write. */
  private scheduleFlush(): void {
    if (this.isScheduled) return;
    this.isScheduled = true;
    setImmediate(() => this.flush());
  }

  /** Sends all waiting output of the turns. */
  flush(): void {
    const turns = [...this.toFlush];
    this.toFlush.clear();
    for (const turn of turns) turn.flush();
    this.isScheduled = false;
    this.channel.flush();
  }

  private onMessage(message: ToAgent): void {
    switch (message.type) {
      case 'load':
        this.factory = this.load(message.code);
        // `start` awaits it for each turn.
        this.factory.catch(() => undefined);
        return;
      case 'turn':
        void this.start(message.turn, message.request);
        return;
      case 'cancel':
        // Not now: the executor may be inside `block`, and must not be entered again.
        setImmediate(() => this.turns.get(message.turn)?.cancel());
        return;
      case 'close':
        this.turns.get(message.turn)?.close();
        return;
      case 'credit':
        this.turns.get(message.turn)?.credit(message.size);
        return;
      case 'step-reply':
        this.turns.get(message.turn)?.onStepReply(message.id, message.reply);
        return;
      case 'model-piece':
        this.turns.get(message.turn)?.onPiece(message.id, message.piece);
        return;
      case 'secret-reply':
        this.turns.get(message.turn)?.onSecret(message.id, message.reply);
        return;
      case 'ping':
        this.say({ type: 'pong' });
    }
  }

  private async load({ folder, module, kind }: CodeFolder): Promise<ExecutorFactory> {
    try {
      // The agent runs in its own folder. The worker's folder holds the platform's `.env`.
      process.chdir(folder);
      if (kind === 'tools') {
        const tools = await loadTools(folder);
        this.loaded = () => new ToolExecutor(tools);
        this.say({ type: 'loaded', tools: tools.map(({ declared }) => declared) });
        return this.loaded;
      }
      this.loaded = await loadExecutor(folder, module);
      // Create one executor to find errors of its constructor now.
      this.loaded();
      this.say({ type: 'loaded' });
      return this.loaded;
    } catch (error) {
      // Reading the thrown value may throw again.
      const fault = await loadFaultOf(error, folder).catch(() => undefined);
      this.say({ type: 'loaded', error: errorDetail(error), ...(fault && { fault }) });
      throw error;
    }
  }

  private async start(turn: number, request: ConstructorParameters<typeof HostedTurn>[1]): Promise<void> {
    const hosted = new HostedTurn(turn, request, this);
    this.turns.set(turn, hosted);
    try {
      await this.factory;
    } catch {
      // `load` has reported the error to the worker.
      return;
    }
    this.channel.flushIfLate();
    await hosted.run();
  }
}

const turns = new Turns();
const turnNow = (): number | null => currentTurn.getStore()?.turn ?? null;

captureConsole((level, text) => turns.say({ type: 'line', turn: turnNow(), level, text }));

const onUncaught = (error: unknown): void =>
  turns.say({ type: 'uncaught', turn: turnNow(), error: errorDetail(error) });
process.on('uncaughtException', onUncaught);
process.on('unhandledRejection', onUncaught);
// Events that were published before count.
process.on('exit', () => turns.flush());

// `process.exit` in an agent's code fails its own turn. Other turns of the process continue.
const exit = process.exit.bind(process);
process.exit = (code): never => {
  if (!currentTurn.getStore()) return exit(code);
  const error = new Error(`The agent called process.exit(${code ?? ''})`);
  onUncaught(error);
  throw error;
};

// Notices the end of the worker also while an agent blocks this thread.
new Worker(join(__dirname, `lifeline-thread${__filename.endsWith('.ts') ? '.ts' : '.js'}`), {
  env: {},
  stdin: false,
}).unref();
