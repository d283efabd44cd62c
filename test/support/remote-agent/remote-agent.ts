import { AgentCard, Role, TaskState } from '@a2a-js/sdk';
import { LegacyJsonRpcTransportHandler } from '@a2a-js/sdk/compat/v0_3/server';
import { DefaultRequestHandler, JsonRpcTransportHandler, ServerCallContext } from '@a2a-js/sdk/server';
import { randomUUID } from 'node:crypto';
import { type IncomingMessage, type Server, type ServerResponse, createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text as readText } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import { handleRest, methodOf } from './rest-handler.js';
import { ScriptedExecutor, text } from './scripted-executor.js';
import { Disk, SurvivingTasks } from './surviving-tasks.js';
import { freePort } from '../ports.js';
import { KEEPS_CONNECTIONS } from '../server-options.js';

const LISTEN_TRIES = 50;

export interface RemoteAgentOptions {
  version: '1.0' | '0.3';
  /** HTTP+JSON is there in version 1.0. */
  binding?: 'JSONRPC' | 'HTTP+JSON';
  /** Whether its card has `streaming`. */
  streaming?: boolean;
  /** Requests without this bearer token are refused. */
  token?: string;
  /** Where its card sends callers, if not to itself. */
  sendsTo?: string;
  port?: number;
  /** Left from an earlier server: it continues with the tasks that had not ended. */
  disk?: Disk;
}

/** A request that it got. */
export interface Asked {
  method: string;
  headers: IncomingMessage['headers'];
  params: {
    message?: { messageId?: string; taskId?: string; contextId?: string; metadata?: unknown };
    id?: string;
    metadata?: unknown;
    configuration?: unknown;
  };
}

/** An answer that has nothing to do with the request. */
interface OddAnswer {
  status?: number;
  type?: string;
  body?: string;
  location?: string;
}

/**
 * What happens to a request instead of what it asks for: an HTTP status or a whole answer, a connection that is cut, an error of
 * JSON-RPC by its code. Streams: events come twice, the first one is missing, there is none, the last one is cut in the middle, or
 * the last chunk of an artifact has no parts, or events do not name their task. `unary`: a streaming call gets the plain result. `foreign id`: the id of another
 * request. `capitals`: the media type of a stream in capitals.
 */
export type Mishap =
  | number
  | OddAnswer
  | { error: number }
  | 'cut before'
  | 'cut after'
  | 'twice'
  | 'no snapshot'
  | 'empty stream'
  | 'half event'
  | 'no parts'
  | 'no ids'
  | 'events of others'
  | 'unary'
  | 'foreign id'
  | 'capitals';

/** An A2A server of the official SDK, in this process, with one version, which can be killed and started again. */
export class RemoteAgent {
  readonly executor = new ScriptedExecutor();
  readonly asked: Asked[] = [];
  private readonly mishaps: { method: string; what: Mishap }[] = [];
  private readonly store: SurvivingTasks;
  private readonly http: Server;
  private port = 0;
  private readonly disk: Disk;
  private waiting: { until: () => boolean; resolve: () => void }[] = [];

  private constructor(private readonly options: RemoteAgentOptions) {
    this.disk = options.disk ?? new Disk();
    this.store = new SurvivingTasks(this.disk);
    this.http = createServer(KEEPS_CONNECTIONS, (request, response) => {
      this.answer(request, response).catch(() => response.destroy());
    });
  }

  static async start(options: RemoteAgentOptions): Promise<RemoteAgent> {
    const agent = new RemoteAgent({ ...options, port: options.port ?? (await freePort()) });
    for (let tries = 1; ; tries++) {
      try {
        await agent.listen();
        break;
      } catch (error) {
        // The system may still hold the port of the life before.
        if (tries === LISTEN_TRIES) throw error;
        await delay(100);
      }
    }
    agent.port = (agent.http.address() as AddressInfo).port;
    agent.goOn();
    return agent;
  }

  private listen(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.http.removeAllListeners('error').once('error', reject);
      this.http.listen(this.options.port, '127.0.0.1', resolve);
    });
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  get cardUrl(): string {
    return `${this.url}/.well-known/agent-card.json`;
  }

  /** The methods it was asked for, in order. */
  get methods(): string[] {
    return this.asked.map(({ method }) => method);
  }

  /** Everything that it has stored of its tasks. */
  get tasks() {
    return [...this.disk.tasks.values()];
  }

  /** The next call of the method, in the words of its version, meets with this. */
  spoil(method: string, what: Mishap, times = 1): void {
    for (let i = 0; i < times; i++) this.mishaps.push({ method, what });
  }

  /** Cuts every connection; what it does continues. */
  cutConnections(): void {
    this.http.closeAllConnections();
  }

  /** Resolves when it has been asked for this. */
  async wasAsked(method: string, times = 1): Promise<void> {
    const until = (): boolean => this.methods.filter((asked) => asked === method).length >= times;
    if (!until()) await new Promise<void>((resolve) => this.waiting.push({ until, resolve }));
  }

  /** As by `kill -9`: connections are cut, nothing more is stored. */
  async kill(): Promise<void> {
    this.store.unplug();
    this.executor.die();
    this.http.closeAllConnections();
    await new Promise<void>((resolve) => this.http.close(() => resolve()));
  }

  /** Another server on the same port with the same disk, or with an empty one. */
  restart({ disk = this.disk }: { disk?: Disk } = {}): Promise<RemoteAgent> {
    return RemoteAgent.start({ ...this.options, port: this.port, disk });
  }

  private handler = (): DefaultRequestHandler =>
    (this.made ??= new DefaultRequestHandler(this.card(), this.store, this.executor));
  private made: DefaultRequestHandler | undefined;

  /** Take up the tasks that an earlier server has left unfinished. */
  private goOn(): void {
    for (const { id: taskId, contextId, status } of this.disk.tasks.values()) {
      if (!UNFINISHED.has(status?.state ?? TaskState.TASK_STATE_UNSPECIFIED)) continue;
      const message = {
        messageId: randomUUID(),
        taskId,
        contextId,
        role: Role.ROLE_USER,
        parts: [text('go on')],
        metadata: undefined,
        extensions: [],
        referenceTaskIds: [],
      };
      const request = { tenant: '', message, configuration: undefined, metadata: undefined };
      void drain(this.handler().sendMessageStream(request, new ServerCallContext()));
    }
  }

  private async answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await readText(request);
    const { token } = this.options;
    const call = this.callIn(request, body);
    this.asked.push({ method: call.method, headers: request.headers, params: call.params });
    this.waiting = this.waiting.filter(({ until, resolve }) => !until() || void resolve());
    const mishap = this.mishapOf(call.method);
    const isRefused = token !== undefined && request.headers.authorization !== `Bearer ${token}`;
    if (mishap === 'cut before') response.destroy();
    else if (typeof mishap === 'number') response.writeHead(mishap).end();
    else if (isRefused) response.writeHead(401).end();
    else if (typeof mishap === 'object' && 'error' in mishap)
      json(response, { jsonrpc: '2.0', id: call.id, error: { code: mishap.error, message: SAID } });
    else if (call.method === 'card' && typeof mishap !== 'object') json(response, this.cardJson());
    else if (mishap === 'unary')
      json(response, await this.resultOf(request, asUnary(body), asUnary(request.url)));
    else if (typeof mishap === 'object') {
      // It has got the message, and works on it.
      if (call.method !== 'card' && (mishap.status ?? 200) === 200)
        void this.work(await this.resultOf(request, body));
      const { status = 200, type = 'application/json', body: said = '', location } = mishap;
      response
        .writeHead(status, { 'content-type': type, ...(location !== undefined && { location }) })
        .end(said);
    } else await this.respond(await this.resultOf(request, body), response, mishap);
  }

  private async work(result: object): Promise<void> {
    if (Symbol.asyncIterator in result) await drain(result as AsyncIterable<unknown>);
  }

  private callIn(
    { method, url = '' }: IncomingMessage,
    body: string,
  ): Pick<Asked, 'method' | 'params'> & { id: number } {
    if (url.endsWith('.json')) return { id: 0, method: 'card', params: {} };
    const params = body === '' ? {} : (JSON.parse(body) as Asked & { id: number });
    if (this.isRest) return { id: 0, method: methodOf(restPath(url)), params };
    return method === 'POST' ? (params as Asked & { id: number }) : { id: 0, method: 'unknown', params: {} };
  }

  private async resultOf(request: IncomingMessage, body: string, url = request.url ?? ''): Promise<object> {
    const context = this.contextOf(request);
    if (this.isRest) return handleRest(this.handler(), { path: restPath(url), body, context });
    return this.transport().handle(body, context);
  }

  private get isRest(): boolean {
    return this.options.binding === 'HTTP+JSON';
  }

  private async respond(result: object, response: ServerResponse, mishap: Mishap | undefined): Promise<void> {
    if (!(Symbol.asyncIterator in result)) {
      if (mishap === 'cut after') response.destroy();
      else json(response, mishap === 'foreign id' ? { ...result, id: FOREIGN } : result);
      return;
    }
    const type = mishap === 'capitals' ? 'Text/Event-Stream; charset=UTF-8' : 'text/event-stream';
    response.writeHead(200, { 'content-type': type });
    // To the end, also without a reader: the SDK stores only what it has read from its executor.
    let isFirst = true;
    for await (const event of result as AsyncIterable<object>) {
      if (mishap === 'empty stream' || response.writableEnded) continue;
      const sent = mishap === 'foreign id' ? { ...event, id: FOREIGN } : event;
      const frame = frameOf(sent, mishap);
      if (mishap === 'cut after') response.destroy();
      else if (mishap === 'half event' && !isFirst) response.end(frame.slice(0, frame.length / 2));
      else if (!isFirst || mishap !== 'no snapshot') response.write(frame);
      if (mishap === 'twice' && !isFirst) response.write(frame);
      isFirst = false;
    }
    if (!response.writableEnded) response.end();
  }

  private mishapOf(method: string): Mishap | undefined {
    const index = this.mishaps.findIndex((mishap) => mishap.method === method);
    return this.mishaps.splice(index, index < 0 ? 0 : 1)[0]?.what;
  }

  private transport(): JsonRpcTransportHandler | LegacyJsonRpcTransportHandler {
    return this.options.version === '1.0'
      ? new JsonRpcTransportHandler(this.handler())
      : new LegacyJsonRpcTransportHandler(this.handler());
  }

  private contextOf({ headers }: IncomingMessage): ServerCallContext {
    const header = headers['a2a-extensions'] ?? headers['x-a2a-extensions'];
    const requestedVersion = String(headers['a2a-version'] ?? '0.3');
    if (requestedVersion !== this.options.version) throw new Error(`not my version: ${requestedVersion}`);
    return new ServerCallContext({
      requestedVersion,
      ...(header && { requestedExtensions: String(header).split(',') }),
    });
  }

  private card(): AgentCard {
    return AgentCard.fromJSON({
      name: 'Remote',
      description: 'A remote agent',
      version: '1.0.0',
      supportedInterfaces: [
        {
          url: this.target,
          protocolBinding: this.options.binding ?? 'JSONRPC',
          protocolVersion: this.options.version,
        },
      ],
      capabilities: { streaming: this.options.streaming ?? true },
      defaultInputModes: ['text/plain'],
      defaultOutputModes: ['text/plain'],
      skills: [],
    });
  }

  private cardJson(): object {
    if (this.options.version === '1.0') return AgentCard.toJSON(this.card()) as object;
    return {
      protocolVersion: '0.3.0',
      name: 'Remote',
      description: 'A remote agent',
      version: '1.0.0',
      url: this.target,
      preferredTransport: 'JSONRPC',
      skills: [],
      defaultInputModes: ['text/plain'],
      defaultOutputModes: ['text/plain'],
      capabilities: { streaming: this.options.streaming ?? true },
    };
  }

  private get target(): string {
    return `${this.options.sendsTo ?? this.url}/a2a`;
  }
}

/** The path below the URL that the card names. */
const restPath = (url: string): string => url.replace(/^\/a2a/, '').replace(/\?.*$/, '');

function json(response: ServerResponse, value: object): void {
  response
    .writeHead('error' in value && !('jsonrpc' in value) ? 404 : 200, { 'content-type': 'application/json' })
    .end(JSON.stringify(value));
}

async function drain(events: AsyncIterable<unknown>): Promise<void> {
  for await (const _ of events);
}

/** The message of errors, and the id of another request. */
const SAID = 'The scales are broken';
const FOREIGN = 'another';

/** A streaming call as the plain call of its version. */
const asUnary = (text = ''): string =>
  text
    .replace('"SendStreamingMessage"', '"SendMessage"')
    .replace('"message/stream"', '"message/send"')
    .replace('/message:stream', '/message:send');

/** The frame of an event, or two. */
function frameOf(event: object, mishap: Mishap | undefined): string {
  if (mishap === 'no parts') return partless(event);
  const isId = (name: string): boolean => name === 'taskId' || name === 'contextId';
  const text = JSON.stringify(event, (name, value: unknown) =>
    mishap === 'no ids' && isId(name) ? undefined : value,
  );
  if (mishap === 'events of others' && text.includes('"artifact"'))
    return `data: ${text.replaceAll(/"taskId":"[^"]*"/g, '"taskId":"another"')}\n\ndata: ${text}\n\n`;
  return `data: ${text}\n\n`;
}

/** The frames of an event. The last chunk of an artifact comes as two: its content, and one without parts that ends the artifact. */
function partless(event: object): string {
  const text = JSON.stringify(event);
  if (!text.includes('"lastChunk":true')) return `data: ${text}\n\n`;
  const last = JSON.parse(text, (name, value: unknown) => {
    if (name === 'append') return true;
    return name === 'parts' ? undefined : value;
  }) as object;
  const first = text.replace('"lastChunk":true', '"lastChunk":false');
  const withAppend = JSON.stringify(last).replace('"lastChunk":true', '"append":true,"lastChunk":true');
  return `data: ${first}\n\ndata: ${withAppend}\n\n`;
}

const UNFINISHED: ReadonlySet<TaskState> = new Set([
  TaskState.TASK_STATE_SUBMITTED,
  TaskState.TASK_STATE_WORKING,
]);
