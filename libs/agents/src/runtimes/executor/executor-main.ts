import type { AgentExecutor } from '@a2a-js/sdk/server';
import { readSync, writeSync } from 'node:fs';
import { Socket } from 'node:net';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { captureConsole } from './capture-console.js';
import { HostedTurn, type TurnHost, currentTurn } from './hosted-turn.js';
import { type ExecutorFactory, loadExecutor } from './load-executor.js';
import { type FromAgent, FrameReader, type ToAgent, encodeFrame, errorDetail } from './protocol.js';

// The process of an agent: loads its module and runs its turns. Started by `AgentProcess`, which gives it these.
const IN = 3;
const OUT = 4;
const [maxEventBytes = 0, memoryMb = 0] = process.argv.slice(2, 4).map(Number);

const MAX_FRAME = 1024 * 1024 * 1024;
const SHARE_OF_MEMORY = 1 / 4;
const POLL_MS = 2;

/** The channel to the worker. Writing waits until there is room: the worker always reads. */
class Channel {
  private readonly frames = new FrameReader(MAX_FRAME);
  private readonly bytes = Buffer.allocUnsafe(64 * 1024);
  private readonly pause = new Int32Array(new SharedArrayBuffer(4));

  constructor(private readonly onMessage: (message: ToAgent) => void) {
    const socket = new Socket({ fd: IN, readable: true, writable: false });
    socket.on('data', (chunk: Buffer) => this.take(chunk));
    // Without a worker there is nobody to work for.
    socket.on('close', endGroup);
  }

  send(json: string): void {
    const frame = encodeFrame(json);
    for (let sent = 0; sent < frame.length;) {
      try {
        sent += writeSync(OUT, frame, sent);
      } catch (error) {
        if (!isBusy(error)) throw error;
        this.sleep();
      }
    }
  }

  /** Take messages in, and let nothing else happen, while the condition holds. */
  block(isOver: () => boolean): void {
    while (isOver()) if (!this.readNow()) this.sleep();
  }

  private readNow(): boolean {
    try {
      const count = readSync(IN, this.bytes);
      if (count === 0) endGroup();
      this.take(Buffer.from(this.bytes.subarray(0, count)));
      return true;
    } catch (error) {
      if (!isBusy(error)) throw error;
      return false;
    }
  }

  private take(chunk: Buffer): void {
    for (const text of this.frames.push(chunk)) {
      // oxlint-disable-next-line no-restricted-properties -- said by the worker
      this.onMessage(JSON.parse(text) as ToAgent);
    }
  }

  private sleep(): void {
    Atomics.wait(this.pause, 0, 0, POLL_MS);
  }
}

/** The process leads a group: what the agent has started ends with it. */
const endGroup = (): boolean => process.kill(-process.pid, 'SIGKILL');
const isBusy = (error: unknown): boolean => (error as NodeJS.ErrnoException).code === 'EAGAIN';

/** All turns of this process. */
class Turns implements TurnHost {
  readonly maxEventBytes = maxEventBytes;
  private readonly channel = new Channel((message) => this.onMessage(message));
  private readonly turns = new Map<number, HostedTurn>();
  private readonly toFlush = new Set<HostedTurn>();
  private factory: Promise<ExecutorFactory> | undefined;
  private loaded: ExecutorFactory | undefined;

  /** Those that publish much share a part of the memory. */
  get maxWaiting(): number {
    return (memoryMb * 1024 * 1024 * SHARE_OF_MEMORY) / Math.max(1, this.turns.size);
  }

  createExecutor(): AgentExecutor {
    if (!this.loaded) throw new Error('the module of the agent is not loaded');
    return this.loaded();
  }

  send(json: string): void {
    this.channel.send(json);
  }

  say(message: FromAgent): void {
    this.channel.send(JSON.stringify(message));
  }

  block(isOver: () => boolean): void {
    this.channel.block(isOver);
  }

  flushSoon(turn: HostedTurn): void {
    if (this.toFlush.size === 0) setImmediate(() => this.flush());
    this.toFlush.add(turn);
  }

  ended({ turn }: HostedTurn): void {
    this.turns.delete(turn);
  }

  private flush(): void {
    const turns = [...this.toFlush];
    this.toFlush.clear();
    for (const turn of turns) turn.flush();
  }

  private onMessage(message: ToAgent): void {
    switch (message.type) {
      case 'load':
        this.factory = this.load(message.folder, message.module);
        // The turns of this process learn it.
        this.factory.catch(() => undefined);
        return;
      case 'turn':
        void this.start(message.turn, message.request);
        return;
      case 'cancel':
        // Not here: whoever waits in `block` must not be called again from inside.
        setImmediate(() => this.turns.get(message.turn)?.cancel());
        return;
      case 'close':
        this.turns.get(message.turn)?.close();
        return;
      case 'credit':
        this.turns.get(message.turn)?.credit(message.size);
        return;
      case 'ping':
        this.say({ type: 'pong' });
    }
  }

  private async load(folder: string, module: string | undefined): Promise<ExecutorFactory> {
    try {
      // As if the agent was started in its folder; the worker's own holds the platform's `.env`.
      process.chdir(folder);
      this.loaded = await loadExecutor(folder, module);
      // One that is made for nothing shows now that it can be made.
      this.loaded();
      this.say({ type: 'loaded' });
      return this.loaded;
    } catch (error) {
      this.say({ type: 'loaded', error: errorDetail(error) });
      throw error;
    }
  }

  private async start(turn: number, request: ConstructorParameters<typeof HostedTurn>[1]): Promise<void> {
    const hosted = new HostedTurn(turn, request, this);
    this.turns.set(turn, hosted);
    try {
      await this.factory;
    } catch {
      // The worker knows that the module could not be loaded.
      return;
    }
    await hosted.run();
  }
}

const turns = new Turns();
const turnNow = (): number | null => currentTurn.getStore()?.turn ?? null;

captureConsole((text) => turns.say({ type: 'line', turn: turnNow(), text }));

const onUncaught = (error: unknown): void =>
  turns.say({ type: 'uncaught', turn: turnNow(), error: errorDetail(error) });
process.on('uncaughtException', onUncaught);
process.on('unhandledRejection', onUncaught);

// An agent that ends its process ends its own turn, not those beside it.
const exit = process.exit.bind(process);
process.exit = (code): never => {
  if (!currentTurn.getStore()) return exit(code);
  const error = new Error(`The agent called process.exit(${code ?? ''})`);
  onUncaught(error);
  throw error;
};

// Sees that the worker is gone also while an agent keeps this thread busy.
new Worker(join(__dirname, `lifeline-thread${__filename.endsWith('.ts') ? '.ts' : '.js'}`), {
  env: {},
  stdin: false,
}).unref();
