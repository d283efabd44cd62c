import { Message, type RequestDetails, StreamResponse, Task } from '@baton/a2a';
import type { RequestOptions } from '@a2a-js/sdk/client';
import type { RemoteConnection } from './remote-connector.js';
import { remoteFailure } from './remote-failure.js';
import { timeoutSignal } from '@baton/outbound';
import { within } from '@baton/telemetry';

/** One event of a remote agent. */
export type Said = NonNullable<StreamResponse['payload']>;

/** An agent reads a task in milliseconds. A run holds its slot meanwhile. */
const ANSWER_TIMEOUT_MS = 30_000;

/** The calls of a remote agent in one turn. Every error is a RemoteFailure. All calls end when `stop` aborts. */
export class RemoteCalls {
  constructor(
    private readonly connection: RemoteConnection,
    private readonly stop: AbortSignal,
    /** A stream ends after this time without events, in milliseconds: before the first event, and between events. */
    private readonly silence: { first: number; between: number },
  ) {}

  /**
   * Sends a message and yields the events of the answer. An agent without streaming gives one event.
   * @param details of the caller's request. Only the output modes of its configuration are sent on: the rest is about the answer to
   * the caller
   * @param streams whether to ask for a stream of events
   */
  async *send(
    message: Message,
    { metadata, configuration: asked }: RequestDetails,
    streams: boolean,
  ): AsyncGenerator<Said> {
    const { client } = this.connection;
    const acceptedOutputModes = asked?.acceptedOutputModes ?? [];
    const common = { acceptedOutputModes, taskPushNotificationConfig: undefined };
    if (streams) {
      const configuration =
        acceptedOutputModes.length > 0 ? { ...common, returnImmediately: false } : undefined;
      const request = { tenant: '', metadata, message, configuration };
      yield* this.events((options) => client.sendMessageStream(request, options), this.silence.first);
      return;
    }
    const configuration = { ...common, returnImmediately: true };
    const request = { tenant: '', metadata, message, configuration };
    yield await this.answer(async (options): Promise<Said> => {
      const answer = await client.sendMessage(request, options);
      return 'messageId' in answer
        ? { $case: 'message', value: this.typed(Message, answer) }
        : { $case: 'task', value: this.typed(Task, answer) };
    });
  }

  /** Reads the current task, without its history. */
  get(id: string): Promise<Task> {
    const { client } = this.connection;
    return this.answer(
      async (options) =>
        this.typed(Task, await client.getTask({ tenant: '', id, historyLength: 0 }, options)),
      ANSWER_TIMEOUT_MS,
    );
  }

  /** Subscribes to the events of a task. Some agents send the current task first. */
  subscribe(id: string): AsyncGenerator<Said> {
    const { client } = this.connection;
    return this.events(
      (options) => client.resubscribeTask({ tenant: '', id }, options),
      this.silence.between,
    );
  }

  /**
   * The SDK's client passes on objects of 0.3 unchecked: members may be missing, or of another type. Its answers in 1.0 have been
   * through this.
   */
  private typed<T>(type: { toJSON(value: T): unknown; fromJSON(json: unknown): T }, value: T): T {
    const isLegacy = this.connection.client.protocolVersion.startsWith('0.');
    return isLegacy ? type.fromJSON(type.toJSON(value)) : value;
  }

  private async answer<T>(call: (options: RequestOptions) => Promise<T>, timeoutMs?: number): Promise<T> {
    const { host, redactor, serviceParameters } = this.connection;
    const signals = [this.stop, ...(timeoutMs === undefined ? [] : [timeoutSignal(timeoutMs)])];
    try {
      return await call({ signal: AbortSignal.any(signals), serviceParameters });
    } catch (error) {
      throw remoteFailure(error, host, redactor);
    }
  }

  private async *events(
    open: (options: RequestOptions) => AsyncGenerator<StreamResponse>,
    firstMs: number,
  ): AsyncGenerator<Said> {
    const { host, redactor, serviceParameters } = this.connection;
    const left = new AbortController();
    const events = open({ signal: AbortSignal.any([this.stop, left.signal]), serviceParameters });
    try {
      for (let timeoutMs = firstMs; ; timeoutMs = this.silence.between) {
        const next = await within(events.next(), timeoutMs);
        if (!next || next.done) return;
        const { payload } = this.typed(StreamResponse, next.value);
        if (payload) yield payload;
      }
    } catch (error) {
      throw remoteFailure(error, host, redactor);
    } finally {
      // Close the connection also if the reader leaves early.
      left.abort();
      events.return(undefined).catch(() => undefined);
    }
  }
}
