import { once } from 'node:events';
import http from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { anthropic } from './anthropic.js';
import { google } from './google.js';
import { openaiChat } from './openai-chat.js';
import { openaiResponses } from './openai-responses.js';
import type { Dialect, ModelRequest, ProviderEvent, Reply } from './reply.js';
import { KEEPS_CONNECTIONS } from '../server-options.js';

export type { ModelRequest, Reply } from './reply.js';

const DIALECTS: Record<ModelRequest['api'], Dialect> = {
  'openai-chat': openaiChat,
  'openai-responses': openaiResponses,
  anthropic,
  google,
};

type Script = (request: ModelRequest) => Reply | Promise<Reply>;

/**
 * A server with the APIs of OpenAI, Anthropic and Google, whose model answers from the script of a test: the
 * replies that were put into its queue, or what a function makes of each request.
 */
export class ModelProvider {
  /** What it was asked, oldest first. */
  readonly requests: ModelRequest[] = [];
  /** How many connections it has had. */
  connections = 0;
  private readonly queue: Reply[] = [];
  private readonly sockets = new Set<Socket>();
  private readonly wakers = new Set<() => void>();
  private script: Script | undefined;
  readonly origin: string;

  private constructor(
    private readonly server: http.Server,
    private readonly key: string | undefined,
  ) {
    this.origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    server.on('request', (request, response) => {
      this.onRequest(request, response).catch(() => response.destroy());
    });
    server.on('connection', (socket) => {
      this.connections += 1;
      this.sockets.add(socket);
      socket.once('close', () => this.sockets.delete(socket));
    });
  }

  /** @param key the key that callers must show; unset: none is asked for */
  static async start({ port = 0, key }: { port?: number; key?: string } = {}): Promise<ModelProvider> {
    const server = http.createServer(KEEPS_CONNECTIONS);
    server.listen(port, '127.0.0.1');
    await once(server, 'listening');
    return new ModelProvider(server, key);
  }

  /** The base URL for OpenAI, Anthropic and providers that are compatible with them. */
  get url(): string {
    return `${this.origin}/v1`;
  }

  /** Append to the queue of replies. */
  reply(...replies: Reply[]): void {
    this.queue.push(...replies);
  }

  /** From now on have a function answer where the queue is empty. */
  answer(script: Script): void {
    this.script = script;
  }

  /** Resolves with the request that has this number, from 1, when it has come. */
  async request(number: number): Promise<ModelRequest> {
    for (;;) {
      const found = this.requests[number - 1];
      if (found) return found;
      await new Promise<void>((resolve) => this.wakers.add(resolve));
    }
  }

  /** Forget requests and replies. */
  reset(): void {
    this.requests.length = 0;
    this.queue.length = 0;
    this.script = undefined;
  }

  async stop(): Promise<void> {
    for (const socket of this.sockets) socket.destroy();
    this.server.close();
    await once(this.server, 'close');
  }

  private async onRequest(message: http.IncomingMessage, response: http.ServerResponse): Promise<void> {
    const request = await readRequest(message, response);
    const dialect = DIALECTS[request.api];
    if (this.key !== undefined && !showsKey(request, this.key)) {
      return void sendError(response, dialect, {
        status: 401,
        error: `Incorrect API key: ${keyOf(request)}`,
      });
    }
    this.requests.push(request);
    for (const wake of this.wakers) wake();
    this.wakers.clear();
    const reply = this.queue.shift() ?? (await this.script?.(request));
    if (!reply)
      return void sendError(response, dialect, { status: 400, error: 'the script has no reply left' });
    await reply.after;
    const { demands = '' } = reply;
    if (!JSON.stringify(request.body).includes(demands))
      return void sendError(response, dialect, { status: 400, error: `the request lacks ${demands}` });
    if (reply.body !== undefined) sendBody(response, reply.body, reply);
    else if (reply.status !== undefined && reply.status >= 400) sendError(response, dialect, reply);
    else if (request.streamed) await sendEvents(response, dialect, reply, request);
    else sendJson(response, 200, dialect.whole(reply, request), reply.headers);
  }
}

async function readRequest(message: http.IncomingMessage, response: http.ServerResponse) {
  let text = '';
  for await (const chunk of message.setEncoding('utf8')) text += chunk as string;
  const path = message.url ?? '';
  const body = JSON.parse(text) as { model?: string; stream?: boolean };
  const api = apiOf(path);
  const model = body.model ?? /models\/([^:]+):/.exec(path)?.[1] ?? '';
  const streamed = body.stream === true || path.includes(':streamGenerateContent');
  const answered = new Promise<boolean>((resolve) => {
    response.once('finish', () => resolve(true));
    response.once('close', () => resolve(false));
  });
  const headers = message.headers as ModelRequest['headers'];
  return { api, path, headers, body, streamed, model, answered } satisfies ModelRequest;
}

/** How the interface at a path writes its answers. */
export const dialectAt = (path: string): Dialect => DIALECTS[apiOf(path)];

function apiOf(path: string): ModelRequest['api'] {
  if (path.endsWith('/chat/completions')) return 'openai-chat';
  if (path.endsWith('/responses')) return 'openai-responses';
  if (path.endsWith('/messages')) return 'anthropic';
  return 'google';
}

function keyOf({ headers }: ModelRequest): string {
  const bearer = headers.authorization?.replace('Bearer ', '');
  return bearer ?? headers['x-api-key'] ?? headers['x-goog-api-key'] ?? '';
}

const showsKey = (request: ModelRequest, key: string): boolean => keyOf(request) === key;

function sendJson(
  response: http.ServerResponse,
  status: number,
  body: object,
  headers: Record<string, string> = {},
): void {
  response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body));
}

function sendError(response: http.ServerResponse, dialect: Dialect, reply: Reply): void {
  const status = reply.status ?? 500;
  sendJson(response, status, dialect.error(status, reply.error ?? 'scripted error'), reply.headers);
}

function sendBody(
  response: http.ServerResponse,
  body: string | object,
  { status = 200, headers }: Reply,
): void {
  if (typeof body === 'object') return sendJson(response, status, body, headers);
  response.writeHead(status, { 'content-type': 'text/html', ...headers }).end(body);
}

/** The reply as a stream, with the fault that the script has for it. */
async function sendEvents(
  response: http.ServerResponse,
  dialect: Dialect,
  reply: Reply,
  request: ModelRequest,
): Promise<void> {
  response.writeHead(200, { 'content-type': 'text/event-stream', ...reply.headers }).flushHeaders();
  const { fault, wire = (events) => events } = reply;
  for (const [index, event] of wire(dialect.events(reply, request)).entries()) {
    if (fault?.after === index) {
      // What was said before gets there first.
      if (fault.kind === 'break') return void setImmediate(() => response.destroy());
      if (fault.kind === 'stall') return;
      if (fault.kind === 'end') return void response.end();
      if (fault.kind === 'error') return void response.end(frame(dialect.errorEvent('scripted fault')));
      response.write('data: {"this is": no JSON\n\n');
    }
    if (reply.delayMs) await delay(reply.delayMs);
    await reply.pace?.(index);
    if (response.destroyed) return;
    response.write(typeof event === 'string' ? event : frame(event));
  }
  if (!reply.open) response.end();
}

const frame = ({ event, data }: ProviderEvent): string =>
  `${event ? `event: ${event}\n` : ''}data: ${typeof data === 'string' ? data : JSON.stringify(data)}\n\n`;
