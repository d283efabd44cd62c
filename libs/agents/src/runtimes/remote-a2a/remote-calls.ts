import type { Message, StreamResponse, Task } from '@baton/a2a';
import type { RequestOptions } from '@a2a-js/sdk/client';
import type { RemoteConnection } from './remote-connection.js';
import { remoteFailure } from './remote-failure.js';
import { timeoutSignal } from '../../outbound/timeout-signal.js';

/** One thing that a remote agent says. */
export type Said = NonNullable<StreamResponse['payload']>;

const ANSWER_TIMEOUT_MS = 30_000;
const REQUEST = { tenant: '', metadata: undefined };

/** Calls of a remote agent in one turn. Whatever goes wrong is a RemoteFailure; all calls end when `stop` aborts. */
export class RemoteCalls {
  constructor(
    private readonly connection: RemoteConnection,
    private readonly stop: AbortSignal,
    /** A stream without events for this long ends as if the agent had closed it, in milliseconds. */
    private readonly silence: { first: number; between: number },
  ) {}

  /** Send a message: the events of the answer, or what a single answer holds where the agent does not stream. */
  async *send(message: Message): AsyncGenerator<Said> {
    const { client, streams } = this.connection;
    if (streams) {
      const request = { ...REQUEST, message, configuration: undefined };
      yield* this.events((options) => client.sendMessageStream(request, options), this.silence.first);
      return;
    }
    const configuration = {
      acceptedOutputModes: [],
      taskPushNotificationConfig: undefined,
      returnImmediately: true,
    };
    const answer = await this.answer((options) =>
      client.sendMessage({ ...REQUEST, message, configuration }, options),
    );
    yield 'messageId' in answer ? { $case: 'message', value: answer } : { $case: 'task', value: answer };
  }

  /** The task as it stands now, without its history. */
  get(id: string): Promise<Task> {
    const { client } = this.connection;
    return this.answer(
      (options) => client.getTask({ tenant: '', id, historyLength: 0 }, options),
      ANSWER_TIMEOUT_MS,
    );
  }

  /** The task as it stands now, if the agent says it, and what comes then. */
  subscribe(id: string): AsyncGenerator<Said> {
    const { client } = this.connection;
    return this.events(
      (options) => client.resubscribeTask({ tenant: '', id }, options),
      this.silence.between,
    );
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
      for (let patienceMs = firstMs; ; patienceMs = this.silence.between) {
        const next = await within(patienceMs, events.next());
        if (!next || next.done) return;
        if (next.value.payload) yield next.value.payload;
      }
    } catch (error) {
      throw remoteFailure(error, host, redactor);
    } finally {
      // Whoever leaves in the middle must not keep the connection.
      left.abort();
      events.return(undefined).catch(() => undefined);
    }
  }
}

/** @returns undefined if the time was over first */
async function within<T>(ms: number, value: Promise<T>): Promise<T | undefined> {
  let timer: NodeJS.Timeout | undefined;
  const over = new Promise<undefined>((resolve) => {
    timer = setTimeout(() => resolve(undefined), ms);
  });
  try {
    return await Promise.race([value, over]);
  } finally {
    clearTimeout(timer);
  }
}
