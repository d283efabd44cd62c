/* oxlint-disable typescript/no-deprecated -- the plain server, whose tools need no zod, and the older transport */
import { Server } from '@modelcontextprotocol/sdk/server/index.js';
import { SSEServerTransport } from '@modelcontextprotocol/sdk/server/sse.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import {
  CallToolRequestSchema,
  ListToolsRequestSchema,
  ReadResourceRequestSchema,
} from '@modelcontextprotocol/sdk/types.js';
import { randomUUID } from 'node:crypto';
import { EventEmitter, once } from 'node:events';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import type { ReceivedCall, ScriptedTool } from './script.js';
import { KEEPS_CONNECTIONS } from '../server-options.js';

/** Settings of an agent for its server: on a busy machine a server in the process of a test answers late. */
export const PATIENT = { connectTimeout: '10m', timeout: '10m' };

export interface McpServerOptions {
  tools: ScriptedTool[];
  /** Default: any that is free. */
  port?: number;
  /** `sse` is the transport of 2024-11-05; a server that has only that answers a POST with 405. */
  transport?: 'http' | 'sse';
  /** Without this header of a request it answers 401. */
  authorization?: string;
  /** How many tools a page of the list holds; default: all. */
  pageSize?: number;
  /** Answer a POST with plain JSON in place of a stream. */
  json?: boolean;
  /** It gives no session: each request stands for itself, and a GET is 405. */
  sessionless?: boolean;
  /** Its declaration of its tools. */
  instructions?: string;
  /** By their URIs. */
  resources?: Record<string, object>;
}

/** A real MCP server of the official SDK on loopback, with tools that a test scripts. */
export class TestMcpServer {
  /** Every call that has come, oldest first. */
  readonly calls: ReceivedCall[] = [];
  /** How many connections were initialized. */
  connections = 0;
  /** How many requests came without a session that is not `initialize`, as one of a later revision does. */
  refusedPosts = 0;
  /** Replace it to offer other tools from the next listing on. */
  tools: ScriptedTool[];
  private readonly events = new EventEmitter();
  private readonly sessions = new Map<string, { server: Server; transport: Transport }>();
  private listener: http.Server | undefined;
  private port: number;

  constructor(private readonly options: McpServerOptions) {
    this.tools = options.tools;
    this.port = options.port ?? 0;
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}/mcp`;
  }

  /** How many sessions are open. */
  get open(): number {
    return this.sessions.size;
  }

  /** Listen; after `stop` on the same port again. */
  async start(): Promise<this> {
    const listener = http.createServer(KEEPS_CONNECTIONS, (request, response) => {
      this.answer(request, response).catch((error: unknown) => response.destroy(error as Error));
    });
    this.listener = listener;
    listener.listen(this.port, '127.0.0.1');
    await once(listener, 'listening');
    this.port = (listener.address() as AddressInfo).port;
    return this;
  }

  /** Break every connection and stop listening, as a crash does. */
  async stop(): Promise<void> {
    const closed = new Promise((resolve) => this.listener?.close(resolve) ?? resolve(undefined));
    this.listener?.closeAllConnections();
    await closed;
    const sessions = [...this.sessions.values()];
    this.sessions.clear();
    await Promise.all(sessions.map(({ server }) => server.close()));
  }

  /** Resolves when this many tool calls have come. */
  called(tool: string, times = 1): Promise<void> {
    return this.until(() => this.calls.filter((call) => call.tool === tool).length >= times);
  }

  /** Resolves when the first tool call has been canceled by its caller. */
  canceled(tool: string): Promise<void> {
    return this.until(() => this.calls.some((call) => call.tool === tool && call.canceled));
  }

  /** Resolves when no session is open. */
  left(): Promise<void> {
    return this.until(() => this.sessions.size === 0);
  }

  /** Offers other tools, and notifies the connected clients. */
  async changeTools(tools: ScriptedTool[]): Promise<void> {
    this.tools = tools;
    await Promise.all([...this.sessions.values()].map(({ server }) => server.sendToolListChanged()));
  }

  private async until(met: () => boolean): Promise<void> {
    while (!met()) await once(this.events, 'news');
  }

  private async answer(request: http.IncomingMessage, response: http.ServerResponse): Promise<void> {
    const { authorization } = this.options;
    if (authorization !== undefined && request.headers.authorization !== authorization) {
      response.writeHead(401).end('who are you?');
    } else if (this.options.transport === 'sse') {
      await this.answerSse(request, response);
    } else if (this.options.sessionless) {
      await this.answerAlone(request, response);
    } else {
      await this.answerHttp(request, response);
    }
  }

  private async answerHttp(request: http.IncomingMessage, response: http.ServerResponse): Promise<void> {
    const id = request.headers['mcp-session-id'];
    const known = this.sessions.get(String(id))?.transport as StreamableHTTPServerTransport | undefined;
    if (known) return known.handleRequest(request, response);
    if (id !== undefined) return void response.writeHead(404).end('no such session');
    const server = this.createServer();
    const transport: StreamableHTTPServerTransport = new StreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      enableJsonResponse: this.options.json === true,
      onsessioninitialized: (sessionId) => this.opened(sessionId, server, transport),
    });
    await server.connect(transport);
    await transport.handleRequest(request, response);
    if (response.statusCode === 400) this.refusedPosts += 1;
  }

  private async answerAlone(request: http.IncomingMessage, response: http.ServerResponse): Promise<void> {
    if (request.method !== 'POST') return void response.writeHead(405).end();
    const server = this.createServer();
    const enableJsonResponse = this.options.json === true;
    const transport = new StreamableHTTPServerTransport({
      sessionIdGenerator: undefined,
      enableJsonResponse,
    });
    response.once('close', () => void server.close());
    await server.connect(transport);
    await transport.handleRequest(request, response);
  }

  private async answerSse(request: http.IncomingMessage, response: http.ServerResponse): Promise<void> {
    const url = new URL(request.url ?? '', this.url);
    const known = this.sessions.get(url.searchParams.get('sessionId') ?? '')?.transport as
      | SSEServerTransport
      | undefined;
    if (request.method === 'POST' && known) return known.handlePostMessage(request, response);
    if (request.method !== 'GET') return void response.writeHead(405).end();
    const transport = new SSEServerTransport('/mcp', response);
    const server = this.createServer();
    this.opened(transport.sessionId, server, transport);
    await server.connect(transport);
  }

  private opened(sessionId: string, server: Server, transport: Transport): void {
    this.connections += 1;
    this.sessions.set(sessionId, { server, transport });
    server.onclose = () => {
      this.sessions.delete(sessionId);
      this.events.emit('news');
    };
    this.events.emit('news');
  }

  private createServer(): Server {
    const server = new Server(
      { name: 'test', version: '1.0.0' },
      {
        capabilities: { tools: { listChanged: true }, resources: {} },
        instructions: this.options.instructions,
      },
    );
    server.setRequestHandler(ListToolsRequestSchema, ({ params }) => this.list(Number(params?.cursor ?? 0)));
    server.setRequestHandler(ReadResourceRequestSchema, ({ params: { uri } }) => {
      const found = this.options.resources?.[uri];
      if (!found) throw new Error('no such resource');
      return { contents: [{ uri, ...(!('blob' in found) && { text: '' }), ...found }] };
    });
    server.setRequestHandler(
      CallToolRequestSchema,
      async ({ params }, { signal, sendNotification, _meta, requestInfo }) => {
        const received = {
          tool: params.name,
          input: params.arguments ?? {},
          key: _meta?.['baton/effectKey'],
          header: requestInfo?.headers['idempotency-key'],
          canceled: false,
        };
        signal.addEventListener('abort', () => {
          received.canceled = true;
          this.events.emit('news');
        });
        this.calls.push(received);
        this.events.emit('news');
        const tool = this.tools.find(({ name }) => name === params.name);
        if (!tool) throw new Error(`no tool ${params.name}`);
        const progressToken = _meta?.progressToken ?? 'nobody';
        const progress = (done: number, message?: string): Promise<void> => {
          const params = { progressToken, progress: done, ...(message !== undefined && { message }) };
          return sendNotification({ method: 'notifications/progress', params });
        };
        return tool.call(received.input, { signal, progress });
      },
    );
    return server;
  }

  private list(from: number) {
    const to = from + (this.options.pageSize ?? this.tools.length);
    const tools = this.tools.slice(from, to).map(({ call: _call, ...tool }) => ({
      inputSchema: { type: 'object' as const },
      ...tool,
    }));
    return { tools, ...(to < this.tools.length && { nextCursor: String(to) }) };
  }
}

/** A server that listens on a free port. */
export const startMcpServer = (options: McpServerOptions): Promise<TestMcpServer> =>
  new TestMcpServer(options).start();
