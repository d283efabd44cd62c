import '../../api/buffer';
import { SendMessageRequest, StreamResponse } from '@a2a-js/sdk';
import {
  type Client,
  ClientFactory,
  DefaultAgentCardResolver,
  JsonRpcTransportFactory,
  RestTransportFactory,
} from '@a2a-js/sdk/client';
import { createParser } from 'eventsource-parser';
import { accessToken } from '../../session/session';
import { type Draft, messageOf } from './draft';
import { stateOf, type StreamEvent } from './answer-summary';
import { type RecordedExchange, type ReceivedFrame, HIDDEN_TOKEN } from '../../a2a/exchange';
import { SERVER_URL } from '../../base';
import { isTerminal, isWaiting } from '../../a2a/task-states';

/** Callbacks of a call. */
export interface CallListener {
  onExchange: (exchange: RecordedExchange) => void;
  onFrame: (frame: ReceivedFrame) => void;
  /** What the SDK has read from a frame, in the JSON of A2A 1.0. */
  onEvent: (event: StreamEvent) => void;
}

const TRANSPORTS = { 'JSON-RPC': JsonRpcTransportFactory, 'HTTP+JSON': RestTransportFactory };

/** A call of an agent with the client of the official SDK. It can be cut, and continues after the last frame. */
export class AgentCall {
  private controller = new AbortController();
  private client: Promise<Client> | undefined;
  private taskId: string | undefined;
  private lastId: string | undefined;
  private taskState: string | undefined;
  /** Reads the frames of the newest answer. */
  private recording: Promise<void> | undefined;
  /** The newest request had no answer, a failure of a server or proxy, or an answer that broke off. */
  private isBroken = false;

  constructor(
    private readonly draft: Draft,
    private readonly listener: CallListener,
  ) {}

  /** Sends the message. Resolves when the answer has ended. Rejects with an `AbortError` if it is cut. */
  async send(): Promise<void> {
    const client = await this.connect();
    const request = SendMessageRequest.fromJSON({ message: messageOf(this.draft) });
    const options = { signal: this.controller.signal };
    if (this.draft.isStream) return this.read(client.sendMessageStream(request, options));
    const result = await client.sendMessage(request, options);
    // A task has a status, a message has parts.
    this.take(
      'status' in result
        ? { payload: { $case: 'task', value: result } }
        : { payload: { $case: 'message', value: result } },
    );
  }

  /** Whether the newest answer was cut by the network or the server: its task continues. Ask when the call has settled. */
  async wasCut(): Promise<boolean> {
    await this.recording;
    if (!this.canResume || this.controller.signal.aborted) return false;
    return (
      this.isBroken || (this.draft.isStream && !isTerminal(this.taskState) && !isWaiting(this.taskState))
    );
  }

  /** Resolves when it is time for another try, or when the call is cut. */
  async pause(ms: number): Promise<void> {
    const { signal } = this.controller;
    await new Promise<void>((resolve) => {
      setTimeout(resolve, ms);
      signal.addEventListener('abort', () => resolve());
      window.addEventListener('online', () => resolve(), { once: true });
    });
    signal.throwIfAborted();
  }

  /** Whether there is something to continue. */
  get canResume(): boolean {
    return this.taskId !== undefined && this.lastId !== undefined;
  }

  /** Goes on after the last frame that came in. */
  async resume(): Promise<void> {
    if (this.taskId === undefined) throw new Error('There is no task to subscribe to.');
    if (this.controller.signal.aborted) this.controller = new AbortController();
    const client = await this.connect();
    await this.read(
      client.resubscribeTask({ tenant: '', id: this.taskId }, { signal: this.controller.signal }),
    );
  }

  /** Cuts the connection. The task continues. */
  cut(): void {
    this.controller.abort();
  }

  async cancelTask(): Promise<void> {
    if (this.taskId === undefined) return;
    const client = await this.connect();
    await client.cancelTask({ tenant: '', id: this.taskId, metadata: undefined });
  }

  private async read(events: AsyncIterable<StreamResponse>): Promise<void> {
    for await (const event of events) this.take(event);
  }

  private take(event: StreamResponse): void {
    const { payload } = event;
    if (payload?.$case === 'task') this.taskId = payload.value.id;
    else if (payload) this.taskId = payload.value.taskId;
    const json = StreamResponse.toJSON(event) as StreamEvent;
    this.taskState = stateOf(json) ?? this.taskState;
    this.listener.onEvent(json);
  }

  private connect(): Promise<Client> {
    const { agent, version, binding } = this.draft;
    const legacyCompat = { enabled: version === '0.3' };
    const Transport = TRANSPORTS[binding];
    this.client ??= new ClientFactory({
      transports: [new Transport({ fetchImpl: this.fetchAgent, legacyCompat })],
      cardResolver: new DefaultAgentCardResolver({
        legacyCompat,
        fetchImpl: async (input, init) => {
          const headers = new Headers(init?.headers);
          headers.set('a2a-version', version);
          return fetch(ownUrl(input), { ...init, headers: await authorized(headers) });
        },
      }),
    }).createFromUrl(`${SERVER_URL}/agents/${encodeURIComponent(agent)}/`);
    return this.client;
  }

  /** Sends a request of the SDK, and reports the request and its answer. */
  private readonly fetchAgent: typeof fetch = async (input, init) => {
    const startedAt = performance.now();
    const url = ownUrl(input);
    const headers = new Headers(init?.headers);
    if (this.lastId !== undefined && init?.signal === this.controller.signal)
      headers.set('last-event-id', this.lastId);
    const shown = [...headers, ['authorization', HIDDEN_TOKEN] as [string, string]];
    this.recording = undefined;
    this.isBroken = true;
    const response = await fetch(url, { ...init, headers: await authorized(headers) });
    this.isBroken = response.status >= 500;
    this.listener.onExchange({
      method: init?.method ?? 'GET',
      url,
      requestHeaders: shown,
      body: typeof init?.body === 'string' ? init.body : undefined,
      status: response.status,
      responseHeaders: [...response.headers],
    });
    if (!response.body) return response;
    const [forSdk, forPage] = response.body.tee();
    const isStream = response.headers.get('content-type')?.includes('text/event-stream') ?? false;
    // The SDK reports why it has broken off.
    this.recording = this.record(forPage, isStream, startedAt).catch(() => {
      this.isBroken = true;
    });
    const { status, statusText } = response;
    return new Response(forSdk, { status, statusText, headers: response.headers });
  };

  private async record(
    body: ReadableStream<Uint8Array>,
    isStream: boolean,
    startedAt: number,
  ): Promise<void> {
    const decoder = new TextDecoder();
    const note = (id: string | undefined, data: string): void => {
      if (id !== undefined) this.lastId = id;
      this.listener.onFrame({ id, data, afterMs: performance.now() - startedAt });
    };
    const parser = createParser({ onEvent: ({ id, data }) => note(id, data) });
    let text = '';
    const reader = body.getReader();
    for (let part = await reader.read(); !part.done; part = await reader.read()) {
      const chunk = decoder.decode(part.value, { stream: true });
      if (isStream) parser.feed(chunk);
      else text += chunk;
    }
    if (!isStream && text !== '') note(undefined, text);
  }
}

/** The card may name another host name of this server: the page calls only its own. */
function ownUrl(input: RequestInfo | URL): string {
  const { pathname, search } = new URL(input instanceof Request ? input.url : input);
  return window.location.origin + pathname + search;
}

async function authorized(headers: Headers): Promise<Headers> {
  const token = await accessToken();
  const all = new Headers(headers);
  if (token !== undefined) all.set('authorization', `Bearer ${token}`);
  return all;
}
