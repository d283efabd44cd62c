import { once } from 'node:events';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { answerTo } from './raw-answers.js';

export type RawStep =
  | ('initialize' | 'notifications/initialized' | 'tools/list' | 'tools/call')
  | ('GET' | 'DELETE');

/** The fault of a server at a step. Each field is one fault. */
export interface HttpQuirk {
  /** In place of the right result. */
  result?: unknown;
  /** A JSON-RPC error in place of a result. */
  error?: unknown;
  /** The whole message. `"$id"` in it is the id of the request. */
  message?: unknown;
  /** The body as it is. */
  body?: string | Buffer;
  status?: number;
  headers?: http.OutgoingHttpHeaders;
  /** End the answer after these bytes, properly. */
  end?: number;
  /** Break the connection after these bytes. */
  reset?: number;
  /** Answer nothing. */
  silent?: boolean;
  /** The quirk is over after so many times. */
  times?: number;
}

export interface RawServerOptions {
  quirks?: Partial<Record<RawStep, HttpQuirk>>;
  /** Answer a request with a stream of events in place of JSON. */
  stream?: boolean;
  /** Give out a session. */
  session?: boolean;
}

/** An MCP server over streamable HTTP without an SDK, which would correct the answers of a test. */
export class RawMcpServer {
  /** Messages of the client, oldest first. */
  readonly requests: { id?: unknown; method: string; params?: unknown }[] = [];
  private readonly listener: http.Server;
  private readonly times = new Map<string, number>();

  private constructor(private readonly options: RawServerOptions) {
    this.listener = http.createServer((request, response) => {
      this.answer(request, response).catch((error: unknown) => response.destroy(error as Error));
    });
  }

  static async start(options: RawServerOptions = {}): Promise<RawMcpServer> {
    const server = new RawMcpServer(options);
    server.listener.listen(0, '127.0.0.1');
    await once(server.listener, 'listening');
    return server;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.listener.address() as AddressInfo).port}/mcp`;
  }

  /** How often a tool was called. */
  get calls(): number {
    return this.requests.filter(({ method }) => method === 'tools/call').length;
  }

  async stop(): Promise<void> {
    this.listener.closeAllConnections();
    await new Promise((resolve) => this.listener.close(resolve));
  }

  private async answer(request: http.IncomingMessage, response: http.ServerResponse): Promise<void> {
    let text = '';
    for await (const chunk of request.setEncoding('utf8')) text += chunk as string;
    const message = (text === '' ? { method: request.method } : JSON.parse(text)) as {
      id?: unknown;
      method: string;
    };
    this.requests.push(message);
    const quirk = this.quirkOf(message.method as RawStep);
    if (quirk?.silent) return;
    if (!quirk && request.method !== 'POST') return void response.writeHead(405).end();
    if (!quirk && message.id === undefined) return void response.writeHead(202).end();
    const json = JSON.stringify(answerTo(message, quirk));
    const body = Buffer.from(
      quirk?.body ?? (this.options.stream ? `event: message\ndata: ${json}\n\n` : json),
    );
    response.writeHead(quirk?.status ?? 200, {
      'content-type': this.options.stream ? 'text/event-stream' : 'application/json',
      ...(this.options.session && { 'mcp-session-id': 'a-session' }),
      ...quirk?.headers,
    });
    if (quirk?.reset !== undefined) {
      // The bytes are on their way before the connection breaks.
      response.write(body.subarray(0, quirk.reset), () => setImmediate(() => response.destroy()));
    } else response.end(quirk?.end === undefined ? body : body.subarray(0, quirk.end));
  }

  private quirkOf(step: RawStep): HttpQuirk | undefined {
    const quirk = this.options.quirks?.[step];
    const before = this.times.get(step) ?? 0;
    this.times.set(step, before + 1);
    return before < (quirk?.times ?? Infinity) ? quirk : undefined;
  }
}
