import { type AgentExecutor, RequestContext, ServerCallContext } from '@a2a-js/sdk/server';
import { Message, Part, SendMessageRequest, Task } from '@a2a-js/sdk';
import { AsyncLocalStorage } from 'node:async_hooks';
import { setTimeout as delay } from 'node:timers/promises';
import {
  type FromAgent,
  MAX_BATCH,
  type SecretReply,
  type TurnRequest,
  WINDOW,
  errorDetail,
} from '../protocol.js';
import type { ModelPiece } from '../model-protocol.js';
import type { Parked, StepReply } from '../step-protocol.js';
import { HostedSteps } from './hosted-steps.js';
import { type EventSink, TurnBus } from './turn-bus.js';

// The SDK reads `{"data": null}` as a part without content (a2a-js#642). An agent that publishes its input again would fail.
const sdkPartFromJson = Part.fromJSON.bind(Part);
Part.fromJSON = (object: { data?: unknown }) => {
  const part = sdkPartFromJson(object);
  return part.content === undefined && object.data === null
    ? { ...part, content: { $case: 'data', value: null } }
    : part;
};

/** How long an attempt that only compensates waits for the code to call its steps again, in ms. */
const COLLECT_MS = 60_000;

/** The turn of the code that runs now. */
export const currentTurn = new AsyncLocalStorage<HostedTurn>();

/** Dependencies of a turn in its process. */
export interface TurnHost {
  readonly maxEventBytes: number;
  createExecutor(): AgentExecutor;
  /** @param json a `FromAgent` */
  send(json: string): void;
  /** Calls `flush` once, soon. */
  flushSoon(turn: HostedTurn): void;
  /**
   * Blocks the process while `mustWait` is true, because the worker reads too slowly. `publish` cannot be awaited, so
   * this is the only way to slow down an executor that publishes without a pause.
   */
  block(mustWait: () => boolean): void;
  /** The turn has sent its last message. */
  onEnd(turn: HostedTurn): void;
  /** Maximum unsent events of a turn, in characters of JSON. */
  readonly maxUnsentSize: number;
}

/** One call of `execute` in an agent's process. */
export class HostedTurn implements EventSink {
  private readonly bus: TurnBus;
  private executor: AgentExecutor | undefined;
  /** The context of the call for the executor. It stores there the extensions that the executor activates. */
  private call: ServerCallContext | undefined;
  private readonly steps: HostedSteps;
  /** Resolves when the turn stops waiting for the code. If all steps wait, the value has their reasons. */
  private readonly left: Promise<Parked>;
  /** Events and step messages, in the order in which they are sent. */
  private unsent: { json: string; isEvent: boolean }[] = [];
  private unsentSize = 0;
  /** Characters that were sent and not yet read. */
  private unread = 0;
  private closed = false;
  private canceled = false;
  private hasFinished = false;
  private result: FromAgent | undefined;
  private lastSecret = 0;
  /** Callbacks of the requests for secrets without a reply, by request id. */
  private readonly pendingSecrets = new Map<number, (reply: SecretReply) => void>();

  constructor(
    readonly turn: number,
    private readonly request: TurnRequest,
    private readonly host: TurnHost,
  ) {
    this.bus = new TurnBus(this, () => this.call?.activatedExtensions ?? []);
    let leave: (parked: Parked) => void = () => undefined;
    this.left = new Promise((resolve) => (leave = resolve));
    this.steps = new HostedSteps(
      request.steps ?? [],
      {
        send: (step) => this.sendAfterEvents({ type: 'step', turn, step }),
        park: leave,
        leave: () => leave({}),
      },
      request,
    );
    this.steps.link.isReplay = request.isReplay ?? false;
  }

  get maxEventBytes(): number {
    return this.host.maxEventBytes;
  }

  /** Runs the executor; resolves when it has returned. Never rejects. */
  async run(): Promise<void> {
    let error: unknown;
    let threw = false;
    let parked: Parked | undefined;
    try {
      parked = await currentTurn.run(this, async () => {
        // The turn was stopped while the process started: do not call `execute`.
        if (this.canceled || this.closed) return undefined;
        this.executor = this.host.createExecutor();
        const context = requestContext(this.request);
        this.call = Object.assign(context.context, this.steps.api, {
          secret: (name: string) => this.secret(name),
        });
        const executed = this.executor.execute(context, this.bus);
        // A parked call of `execute` is never continued: the next attempt calls `execute` again.
        return (
          (await Promise.race([this.untilReturned(executed), this.left, this.untilCollected()])) ?? undefined
        );
      });
    } catch (thrown) {
      threw = true;
      error = thrown;
    }
    if (threw || (this.request.compensating && !parked && !this.canceled && !this.closed)) {
      const failure = await currentTurn.run(this, () => this.compensate(error));
      threw = failure !== undefined;
      error = failure?.error;
    }
    this.bus.finished();
    this.result = {
      type: 'returned',
      turn: this.turn,
      ...(threw && { error: errorDetail(error) }),
      ...(parked && { parked }),
      ...this.mismatch(),
    };
    this.flush();
  }

  /**
   * Undoes the finished steps. An import may have brought a journal that cannot be continued: that is an error of this turn. Uncaught, it
   * would be blamed on another turn of the process.
   */
  private async compensate(thrown: unknown): Promise<{ error: unknown } | undefined> {
    try {
      return await this.steps.compensation.compensate(thrown);
    } catch (error) {
      return { error };
    }
  }

  /** In an attempt that only compensates: resolves when the code has called the steps to compensate, or takes too long. */
  private async untilCollected(): Promise<undefined> {
    const late = this.request.compensating
      ? delay(COLLECT_MS, undefined, { ref: false })
      : new Promise(() => undefined);
    await Promise.race([this.steps.compensation.collected, late]);
    return undefined;
  }

  /** A mismatch takes precedence over an error and over a wait of the code. A stopped turn reports none. */
  private mismatch(): { mismatch?: string } {
    const { mismatch } = this.steps.link;
    return mismatch === undefined || this.canceled || this.closed ? {} : { mismatch };
  }

  private async untilReturned(executed: Promise<void>): Promise<void> {
    await executed;
    this.steps.onEnd();
  }

  /** Calls the executor's `cancelTask`. */
  cancel(): void {
    this.canceled = true;
    this.steps.link.stop();
    const failed = (error: unknown): void =>
      this.send({ type: 'cancel-failed', turn: this.turn, error: errorDetail(error) });
    currentTurn.run(this, () => {
      const call = async (): Promise<void> => this.executor?.cancelTask(this.request.taskId, this.bus);
      call().catch(failed);
    });
  }

  /** The worker reads no further events. */
  close(): void {
    this.closed = true;
    this.steps.link.stop();
    for (const id of this.pendingSecrets.keys()) this.onSecret(id, { refusal: STOPPED });
    this.unsent = [];
    this.unsentSize = 0;
    this.bus.finished();
    this.flush();
  }

  /** The worker has read that many characters. */
  credit(size: number): void {
    this.unread -= size;
    this.flush();
  }

  onStepReply(id: number, reply: StepReply): void {
    this.steps.link.onReply(id, reply);
  }

  onPiece(id: number, piece: ModelPiece): void {
    this.steps.onPiece(id, piece);
  }

  onSecret(id: number, reply: SecretReply): void {
    this.pendingSecrets.get(id)?.(reply);
    this.pendingSecrets.delete(id);
  }

  /** Requests the secret from the worker each time, because secrets can change during a turn. */
  private secret(name: string): Promise<string> {
    const promise = new Promise<string>((resolve, reject) => {
      if (typeof name !== 'string') throw new TypeError('secret() takes the name of a secret');
      if (this.closed) throw new Error(STOPPED);
      const id = ++this.lastSecret;
      this.pendingSecrets.set(id, (reply) => {
        if ('value' in reply) resolve(reply.value);
        else reject(new Error(reply.refusal));
      });
      this.send({ type: 'secret', turn: this.turn, id, name });
    });
    // An unhandled rejection must not count as an error of the process.
    promise.catch(() => undefined);
    return promise;
  }

  event(event: string): void {
    if (this.closed || this.steps.link.mismatch !== undefined) return;
    const json = this.steps.isReplaying ? `{"replayed":true,${event.slice(1)}` : event;
    this.unsent.push({ json, isEvent: true });
    this.unsentSize += json.length;
    if (this.unsentSize > this.host.maxUnsentSize) {
      this.flush();
      this.host.block(() => this.unsentSize > this.host.maxUnsentSize);
    } else this.host.flushSoon(this);
  }

  finished(): void {
    this.hasFinished = true;
    this.host.flushSoon(this);
  }

  /** Sends as many events as the worker has room for, and after the last one the result. */
  flush(): void {
    for (let [next] = this.unsent; next; [next] = this.unsent) {
      if (next.isEvent && this.unread >= WINDOW) return;
      if (next.isEvent) this.sendBatch();
      else this.host.send(this.unsent.shift()?.json ?? '');
    }
    const { result } = this;
    if (!result) {
      if (this.hasFinished && !this.closed) this.send({ type: 'finished', turn: this.turn });
      this.hasFinished = false;
      return;
    }
    this.result = undefined;
    this.send(result);
    this.host.onEnd(this);
  }

  private sendBatch(): void {
    let size = this.unsent[0]?.json.length ?? 0;
    let count = 1;
    for (; count < this.unsent.length; count++) {
      const next = this.unsent[count];
      if (!next?.isEvent || size + next.json.length > MAX_BATCH) break;
      size += next.json.length;
    }
    const batch = this.unsent.splice(0, count);
    const events = batch.map(({ json }) => json).join(',');
    this.unsentSize -= size;
    this.unread += size;
    // The events are JSON already.
    this.host.send(`{"type":"events","turn":${this.turn},"size":${size},"events":[${events}]}`);
  }

  /** Sends a message after the events that were published before it. */
  private sendAfterEvents(message: FromAgent): void {
    if (this.closed) return;
    this.unsent.push({ json: JSON.stringify(message), isEvent: false });
    this.flush();
  }

  private send(message: FromAgent): void {
    this.host.send(JSON.stringify(message));
  }
}

const STOPPED = 'The turn was stopped';

/** The request context that the SDK's own server would create for this turn. Each call creates new objects. */
export function requestContext(request: TurnRequest): RequestContext {
  const { tenantId, taskId, contextId, extensions, message, details, task, referenceTasks } = request;
  const call = new ServerCallContext({
    tenant: tenantId,
    user: { isAuthenticated: true, userName: tenantId },
    requestedExtensions: extensions,
    requestedVersion: '1.0',
  });
  const userMessage = Message.fromJSON(message);
  const sent = { ...SendMessageRequest.fromJSON(details ?? {}), tenant: tenantId, message: userMessage };
  const stored = task === undefined ? undefined : Task.fromJSON(task);
  const references = referenceTasks?.map((reference) => Task.fromJSON(reference));
  return new RequestContext(sent, taskId, contextId, call, stored, references);
}
