import { randomUUID } from 'node:crypto';
import { EventEmitter, once } from 'node:events';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { KEEPS_CONNECTIONS } from '../server-options.js';

const VERSION = '2026-07-28';
const META = 'io.modelcontextprotocol/';
const TASKS = `${META}tasks`;

type Json = Record<string, unknown>;

/** What a tool of a modern server can do besides answering. */
export interface ModernContext {
  /** Aborts when the caller closes the answer. */
  signal: AbortSignal;
  /** Tells the caller that the call continues. */
  progress(done: number, message?: string): void;
  /** Of a repeated call after a question. */
  inputResponses: Json | undefined;
  requestState: string | undefined;
  /** `clientCapabilities` of the request. */
  capabilities: Json;
}

export interface ModernTool {
  name: string;
  description?: string;
  inputSchema?: Json;
  annotations?: Json;
  /** @returns a result; a `ModernTask` is answered as the handle of a task */
  call(input: Json, context: ModernContext): unknown;
}

/** A call that has reached the server. */
export interface ModernCall {
  tool: string;
  input: Json;
  meta: Json;
  headers: http.IncomingHttpHeaders;
  /** The caller has closed the answer before its end. */
  canceled: boolean;
}

/** A task of a tool. It lives in the process of the test, so workers of Baton may die meanwhile. */
export class ModernTask {
  readonly taskId = randomUUID();
  readonly createdAt = new Date().toISOString();
  status: 'working' | 'input_required' | 'completed' | 'cancelled' | 'failed' = 'working';
  /** How often its state was read, and what was sent to it. */
  gets = 0;
  readonly updates: Json[] = [];
  cancels = 0;
  private more: Json = {};

  constructor(
    private readonly changed: () => void,
    readonly options: { pollIntervalMs?: number; ttlMs?: number | null; statusMessage?: string } = {},
  ) {}

  get json(): Json {
    const { taskId, createdAt, status, options } = this;
    return {
      taskId,
      status,
      createdAt,
      lastUpdatedAt: new Date().toISOString(),
      ttlMs: null,
      pollIntervalMs: 50,
      ...options,
    };
  }

  get detail(): Json {
    return { ...this.json, ...this.more };
  }

  say(statusMessage: string): void {
    this.options.statusMessage = statusMessage;
    this.changed();
  }

  complete(result: Json): void {
    this.set('completed', { result });
  }

  fail(error: Json): void {
    this.set('failed', { error });
  }

  ask(inputRequests: Json): void {
    this.set('input_required', { inputRequests });
  }

  resume(): void {
    this.set('working', {});
  }

  set(status: ModernTask['status'], more: Json = {}): void {
    this.status = status;
    this.more = more;
    this.changed();
  }
}

export interface ModernServerOptions {
  tools: ModernTool[];
  port?: number;
  /** Answer with plain JSON in place of a stream. */
  json?: boolean;
  /** Without this header of a request it answers 401. */
  authorization?: string;
  instructions?: string;
  pageSize?: number;
  /** Resources by their uri, as `resources/read` answers. */
  resources?: Record<string, Json>;
  /** So many of its first requests are never answered. */
  busyFor?: number;
}

class WireError extends Error {
  constructor(
    readonly status: number,
    readonly code: number,
    message: string,
    readonly data?: unknown,
  ) {
    super(message);
  }
}

/** An MCP server of revision 2026-07-28, as strict as the specification. It has no session: `stop` and `start` lose nothing. */
export class ModernMcpServer {
  readonly calls: ModernCall[] = [];
  /** All methods, oldest first, also those that were refused. */
  readonly methods: string[] = [];
  readonly tasks = new Map<string, ModernTask>();
  tools: ModernTool[];
  private readonly events = new EventEmitter().setMaxListeners(100);
  private listener: http.Server | undefined;
  private port: number;

  constructor(private readonly options: ModernServerOptions) {
    this.tools = options.tools;
    this.port = options.port ?? 0;
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}/mcp`;
  }

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

  /** Breaks every connection and stops listening, as a crash does. Its tasks are kept. */
  async stop(): Promise<void> {
    const closed = new Promise((resolve) => this.listener?.close(resolve) ?? resolve(undefined));
    this.listener?.closeAllConnections();
    await closed;
  }

  /** Breaks every connection, and continues. */
  breakConnections(): void {
    this.listener?.closeAllConnections();
  }

  /** A task for a tool to return. */
  newTask(options?: ModernTask['options']): ModernTask {
    const task = new ModernTask(() => this.events.emit('news'), options);
    this.tasks.set(task.taskId, task);
    return task;
  }

  /** Resolves with the newest task when there are this many. */
  async task(number = 1): Promise<ModernTask> {
    await this.until(() => this.tasks.size >= number);
    return [...this.tasks.values()][number - 1] as ModernTask;
  }

  called(tool: string, times = 1): Promise<void> {
    return this.until(() => this.calls.filter((call) => call.tool === tool).length >= times);
  }

  async until(met: () => boolean): Promise<void> {
    while (!met()) await once(this.events, 'news');
  }

  private async answer(request: http.IncomingMessage, response: http.ServerResponse): Promise<void> {
    let text = '';
    for await (const chunk of request.setEncoding('utf8')) text += chunk as string;
    const { authorization } = this.options;
    if (authorization !== undefined && request.headers.authorization !== authorization)
      return void response.writeHead(401).end('who are you?');
    if (request.method !== 'POST') return void response.writeHead(405).end();
    const message = JSON.parse(text) as { id?: unknown; method: string; params?: Json };
    this.methods.push(message.method);
    this.events.emit('news');
    if (this.methods.length <= (this.options.busyFor ?? 0)) return;
    const { id } = message;
    const stream = this.options.json !== true && message.method === 'tools/call';
    const begin = (): void => {
      if (response.headersSent) return;
      response.writeHead(200, { 'content-type': stream ? 'text/event-stream' : 'application/json' });
    };
    const write = (json: unknown): void => {
      begin();
      response.write(stream ? `event: message\ndata: ${JSON.stringify(json)}\n\n` : JSON.stringify(json));
    };
    const ended = new AbortController();
    response.once('close', () => {
      if (!response.writableFinished) ended.abort();
    });
    const notify = (params: Json): void => {
      if (stream) write({ jsonrpc: '2.0', method: 'notifications/progress', params });
    };
    try {
      const params = checked(message, request.headers);
      const result = await this.result(message.method, params, request.headers, ended.signal, notify);
      write({ jsonrpc: '2.0', id, result: { resultType: 'complete', ...(result as object) } });
    } catch (error) {
      const {
        status,
        code,
        message: said,
        data,
      } = error instanceof WireError ? error : new WireError(200, -32603, (error as Error).message);
      const failure = {
        jsonrpc: '2.0',
        id,
        error: { code, message: said, ...(data !== undefined && { data }) },
      };
      if (status === 200) write(failure);
      else response.writeHead(status, { 'content-type': 'application/json' }).write(JSON.stringify(failure));
    }
    response.end();
  }

  private async result(
    method: string,
    params: Json,
    headers: http.IncomingHttpHeaders,
    signal: AbortSignal,
    notify: (params: Json) => void,
  ): Promise<unknown> {
    const meta = params._meta as Json;
    switch (method) {
      case 'server/discover':
        return {
          supportedVersions: [VERSION],
          capabilities: { tools: {}, resources: {}, extensions: { [TASKS]: {} } },
          serverInfo: { name: 'modern', version: '1.0.0' },
          ...(this.options.instructions !== undefined && { instructions: this.options.instructions }),
          ttlMs: 60_000,
          cacheScope: 'private',
        };
      case 'tools/list':
        return { ...this.list(Number(params.cursor ?? 0)), ttlMs: 0, cacheScope: 'private' };
      case 'tools/call':
        return this.call(params, meta, headers, signal, notify);
      case 'resources/read': {
        const found = this.options.resources?.[String(params.uri)];
        if (!found) throw new WireError(200, -32602, 'no such resource');
        return { contents: [{ uri: params.uri, ...found }], ttlMs: 0, cacheScope: 'private' };
      }
      case 'tasks/get':
      case 'tasks/update':
      case 'tasks/cancel':
        return this.onTask(method, params, meta);
      default:
        throw new WireError(404, -32601, `unknown method ${method}`);
    }
  }

  private async call(
    params: Json,
    meta: Json,
    headers: http.IncomingHttpHeaders,
    signal: AbortSignal,
    notify: (params: Json) => void,
  ): Promise<unknown> {
    const tool = this.tools.find(({ name }) => name === params.name);
    if (!tool) throw new WireError(200, -32602, `no tool ${String(params.name)}`);
    const input = (params.arguments ?? {}) as Json;
    const received: ModernCall = { tool: tool.name, input, meta, headers, canceled: false };
    this.calls.push(received);
    signal.addEventListener('abort', () => {
      received.canceled = true;
      this.events.emit('news');
    });
    this.events.emit('news');
    const context: ModernContext = {
      signal,
      progress: (progress, message) =>
        notify({ progressToken: meta.progressToken, progress, ...(message !== undefined && { message }) }),
      inputResponses: params.inputResponses as Json | undefined,
      requestState: params.requestState as string | undefined,
      capabilities: meta[`${META}clientCapabilities`] as Json,
    };
    const result = await tool.call(input, context);
    if (!(result instanceof ModernTask)) return result;
    if (!declaresTasks(meta)) throw missingTasks();
    return { ...result.json, resultType: 'task' };
  }

  private onTask(method: string, params: Json, meta: Json): unknown {
    if (!declaresTasks(meta)) throw missingTasks();
    const task = this.tasks.get(String(params.taskId));
    if (!task) throw new WireError(200, -32602, 'Failed to retrieve task: Task not found');
    if (method === 'tasks/get') task.gets += 1;
    if (method === 'tasks/update') task.updates.push(params.inputResponses as Json);
    if (method === 'tasks/cancel') {
      task.cancels += 1;
      if (['working', 'input_required'].includes(task.status)) task.set('cancelled');
    }
    this.events.emit('news');
    return method === 'tasks/get' ? task.detail : {};
  }

  private list(from: number) {
    const to = from + (this.options.pageSize ?? this.tools.length);
    const tools = this.tools
      .slice(from, to)
      .map(({ call: _call, ...tool }) => ({ inputSchema: { type: 'object' }, ...tool }));
    return { tools, ...(to < this.tools.length && { nextCursor: String(to) }) };
  }
}

const declaresTasks = (meta: Json): boolean => {
  const { extensions } = meta[`${META}clientCapabilities`] as { extensions?: Json };
  return extensions?.[TASKS] !== undefined;
};

const missingTasks = (): WireError =>
  new WireError(400, -32021, 'Missing required client capability', {
    requiredCapabilities: { extensions: { [TASKS]: {} } },
  });

/** The params of a request whose headers and `_meta` are as they must be. */
function checked(
  { method, params = {} }: { method: string; params?: Json },
  headers: http.IncomingHttpHeaders,
): Json {
  const meta = (params._meta ?? {}) as Json;
  const version = meta[`${META}protocolVersion`];
  if (version === undefined || typeof meta[`${META}clientCapabilities`] !== 'object')
    throw new WireError(400, -32602, 'the _meta of the request is not complete');
  const accepts = headers.accept ?? '';
  if (!accepts.includes('application/json') || !accepts.includes('text/event-stream'))
    throw new WireError(406, -32600, 'accept both');
  const name = params.name ?? params.uri ?? params.taskId;
  const wanted: [string, unknown][] = [
    ['mcp-protocol-version', version],
    ['mcp-method', method],
    ['mcp-name', name],
  ];
  for (const [header, value] of wanted) {
    if (decoded(headers[header]) !== value)
      throw new WireError(400, -32020, `Header mismatch: ${header} is ${String(headers[header])}`);
  }
  if (version !== VERSION)
    throw new WireError(400, -32022, 'Unsupported protocol version', {
      supported: [VERSION],
      requested: version,
    });
  return params;
}

function decoded(header: string | string[] | undefined): string | undefined {
  if (typeof header !== 'string') return undefined;
  const [, base64] = /^=\?base64\?(.*)\?=$/.exec(header) ?? [];
  return base64 === undefined ? header : Buffer.from(base64, 'base64').toString('utf8');
}

export const startModernServer = (options: ModernServerOptions): Promise<ModernMcpServer> =>
  new ModernMcpServer(options).start();
