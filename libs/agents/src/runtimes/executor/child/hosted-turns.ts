import type { AgentExecutor } from '@a2a-js/sdk/server';
import { HostedTurn, type TurnHost } from './hosted-turn.js';
import { type ExecutorFactory, loadExecutor } from './load-executor.js';
import { loadFaultOf } from './load-fault.js';
import { loadTools } from './load-tools.js';
import { ToolExecutor } from './tool-executor.js';
import { type CodeFolder, type FromAgent, type ToAgent, errorDetail } from '../protocol.js';
import { WorkerChannel } from './worker-channel.js';

/** Events that wait to be sent may take this share of the memory of the process, over all turns. The rest is for the agent's code. */
const SHARE_OF_MEMORY = 1 / 4;

/** All turns of this process. */
export class HostedTurns implements TurnHost {
  private readonly channel = new WorkerChannel((message) => this.onMessage(message));
  private readonly turns = new Map<number, HostedTurn>();
  private readonly toFlush = new Set<HostedTurn>();
  private isScheduled = false;
  private factory: Promise<ExecutorFactory> | undefined;
  private loaded: ExecutorFactory | undefined;

  /** @param memoryMb the memory of the process, in MB */
  constructor(
    readonly maxEventBytes: number,
    private readonly memoryMb: number,
  ) {}

  /** All turns share a quarter of the memory for events that wait. */
  get maxUnsentSize(): number {
    return (this.memoryMb * 1024 * 1024 * SHARE_OF_MEMORY) / Math.max(1, this.turns.size);
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
