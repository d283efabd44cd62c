import type { AgentExecutor } from '@a2a-js/sdk/server';
import { AsyncLocalStorage } from 'node:async_hooks';
import { type FromAgent, MAX_BATCH, type TurnRequest, WINDOW, errorDetail } from './protocol.js';
import { requestContext } from './request-context.js';
import { type EventSink, TurnBus } from './turn-bus.js';

/** Which turn the code that runs now belongs to. */
export const currentTurn = new AsyncLocalStorage<HostedTurn>();

/** What a turn needs of the process that it runs in. */
export interface TurnHost {
  readonly maxEventBytes: number;
  createExecutor(): AgentExecutor;
  /** @param json a `FromAgent` */
  send(json: string): void;
  /** Call `flush` soon, once. */
  flushSoon(turn: HostedTurn): void;
  /**
   * Much waits because the worker does not read: do nothing else until `isOver` says false. `publish` can not be
   * awaited, so this is the only way to slow down who publishes without a pause.
   */
  block(isOver: () => boolean): void;
  /** The turn has sent its last message. */
  ended(turn: HostedTurn): void;
  /** How much of a turn may wait, in characters of JSON. */
  readonly maxWaiting: number;
}

/** One call of `execute` in the process of an agent. */
export class HostedTurn implements EventSink {
  private readonly bus: TurnBus;
  private executor: AgentExecutor | undefined;
  private waiting: string[] = [];
  private waitingSize = 0;
  /** Sent and not read yet, in characters. */
  private unread = 0;
  private closed = false;
  private canceled = false;
  private hasFinished = false;
  private result: FromAgent | undefined;

  constructor(
    readonly turn: number,
    private readonly request: TurnRequest,
    private readonly host: TurnHost,
  ) {
    this.bus = new TurnBus(this);
  }

  get maxEventBytes(): number {
    return this.host.maxEventBytes;
  }

  /** Runs the executor; resolves when it has returned. Never rejects. */
  async run(): Promise<void> {
    let error: unknown;
    let threw = false;
    try {
      await currentTurn.run(this, async () => {
        // Its process was still starting when it was canceled: there is nothing to stop, and nothing begins.
        if (this.canceled || this.closed) return;
        this.executor = this.host.createExecutor();
        await this.executor.execute(requestContext(this.request), this.bus);
      });
    } catch (thrown) {
      threw = true;
      error = thrown;
    }
    this.bus.finished();
    this.result = { type: 'returned', turn: this.turn, ...(threw && { error: errorDetail(error) }) };
    this.flush();
  }

  /** Call the executor's `cancelTask`. */
  cancel(): void {
    this.canceled = true;
    const failed = (error: unknown): void =>
      this.say({ type: 'cancel-failed', turn: this.turn, error: errorDetail(error) });
    currentTurn.run(this, () => {
      const call = async (): Promise<void> => this.executor?.cancelTask(this.request.taskId, this.bus);
      call().catch(failed);
    });
  }

  /** Nobody reads any more. */
  close(): void {
    this.closed = true;
    this.waiting = [];
    this.waitingSize = 0;
    this.bus.finished();
    this.flush();
  }

  credit(size: number): void {
    this.unread -= size;
    this.flush();
  }

  event(json: string): void {
    if (this.closed) return;
    this.waiting.push(json);
    this.waitingSize += json.length;
    if (this.waitingSize > this.host.maxWaiting) {
      this.flush();
      this.host.block(() => this.waitingSize > this.host.maxWaiting);
    } else this.host.flushSoon(this);
  }

  finished(): void {
    this.hasFinished = true;
    this.host.flushSoon(this);
  }

  /** Send what the worker has room for, then how it ended. */
  flush(): void {
    while (this.waiting.length > 0 && this.unread < WINDOW) this.sendBatch();
    if (this.waiting.length > 0) return;
    const { result } = this;
    if (!result) {
      if (this.hasFinished && !this.closed) this.say({ type: 'finished', turn: this.turn });
      this.hasFinished = false;
      return;
    }
    this.result = undefined;
    this.say(result);
    this.host.ended(this);
  }

  private sendBatch(): void {
    let size = this.waiting[0]?.length ?? 0;
    let count = 1;
    for (; count < this.waiting.length; count++) {
      const next = this.waiting[count]?.length ?? 0;
      if (size + next > MAX_BATCH) break;
      size += next;
    }
    const events = this.waiting.splice(0, count).join(',');
    this.waitingSize -= size;
    this.unread += size;
    // Written by hand: the events are JSON already.
    this.host.send(`{"type":"events","turn":${this.turn},"size":${size},"events":[${events}]}`);
  }

  private say(message: FromAgent): void {
    this.host.send(JSON.stringify(message));
  }
}
