import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import {
  type CallToolResult,
  CallToolResultSchema,
  ListToolsResultSchema,
  type Tool,
  ErrorCode,
  McpError,
} from '@modelcontextprotocol/sdk/types.js';
import { SseError } from '@modelcontextprotocol/sdk/client/sse.js';
import { StreamableHTTPError } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { setTimeout as delay } from 'node:timers/promises';
import type { Link } from './links.js';
import { failureReason } from '@baton/outbound';
import { NOTHING_SECRET } from '../../../../outbound/redactor.js';

const TRIES = 3;
const BACKOFF_MS = 100;
const MAX_PAGES = 100;
const MAX_TOOLS = 1000;
/** Maximum size of a server's tool list, as JSON. */
const MAX_LIST_BYTES = 1024 * 1024;
const CLIENT = { name: 'baton', version: '1.0.0' };

export interface ConnectionOptions {
  /** Links to the server, the preferred one first. Each connection creates a new link. */
  links: readonly (() => Link)[];
  /** Timeouts in milliseconds: of connecting, and of a call without progress. */
  connectTimeout: number;
  timeout: number;
  /** Called with errors outside of calls. */
  onError: (error: Error) => void;
}

interface Connected {
  client: Client;
  link: Link;
}

/** A tool, or the list of tools, is too large. */
export class ToolListExcess extends Error {}

/** A connection to one MCP server, for one turn. It reconnects if the server has dropped the session. */
export class McpConnection {
  private current: Promise<Connected> | undefined;
  /** All connections of the turn: calls may still use one that another call found broken. */
  private readonly made: Connected[] = [];

  constructor(private readonly options: ConnectionOptions) {}

  /** Connects if needed, and lists all tools page by page. Rejects if the server is unreachable. */
  async listTools(signal: AbortSignal): Promise<Tool[]> {
    const { client } = await this.connected(signal);
    if (!client.getServerCapabilities()?.tools) return [];
    const tools: Tool[] = [];
    let bytes = 0;
    let cursor: string | undefined;
    for (let page = 0; page < MAX_PAGES; page++) {
      const request = { method: 'tools/list' as const, params: cursor === undefined ? {} : { cursor } };
      const options = { timeout: this.options.timeout, signal: ownSignal(signal) };
      // Not `client.listTools`, because it compiles the output schemas of the server.
      const listed = await client.request(request, ListToolsResultSchema, options);
      bytes += Buffer.byteLength(JSON.stringify(listed.tools));
      if (bytes > MAX_LIST_BYTES)
        throw new ToolListExcess(
          `its list of tools is larger than ${MAX_LIST_BYTES} bytes: have it offer less`,
        );
      for (const tool of listed.tools) tools.push(tool);
      cursor = listed.nextCursor;
      if (cursor === undefined || tools.length >= MAX_TOOLS) break;
    }
    return tools.slice(0, MAX_TOOLS);
  }

  /**
   * Calls a tool. When `signal` aborts, this cancels the call at the server and rejects.
   * @param repeat `again` repeats a call once if the connection broke during it
   */
  async callTool(
    name: string,
    input: Record<string, unknown>,
    { repeat, signal }: { repeat: 'again' | 'never'; signal: AbortSignal },
  ): Promise<CallToolResult> {
    const used = this.connected(signal);
    try {
      return await this.request(await used, name, input, signal);
    } catch (error) {
      signal.throwIfAborted();
      if (!wasNotStarted(error) && !(repeat === 'again' && isUnknown(error))) throw error;
      if (this.current === used) this.current = undefined;
      return this.request(await this.connected(signal), name, input, signal);
    }
  }

  /** Closes all connections. Never rejects. */
  async close(): Promise<void> {
    this.current = undefined;
    await Promise.all(
      this.made.splice(0).map(async ({ client, link }) => {
        await link.leave();
        await client.close().catch(() => undefined);
      }),
    );
  }

  private request(
    { client }: Connected,
    name: string,
    input: Record<string, unknown>,
    signal: AbortSignal,
  ): Promise<CallToolResult> {
    const request = { method: 'tools/call' as const, params: { name, arguments: input } };
    return client.request(request, CallToolResultSchema, {
      signal: ownSignal(signal),
      timeout: this.options.timeout,
      // With a handler the SDK asks the server for progress, and progress resets the timeout.
      onprogress: () => undefined,
      resetTimeoutOnProgress: true,
    });
  }

  /** The shared connection of all calls. A failed one is replaced. */
  private connected(signal: AbortSignal): Promise<Connected> {
    if (this.current) return this.current;
    const made = this.connect(signal);
    this.current = made;
    made.catch(() => {
      if (this.current === made) this.current = undefined;
    });
    return made;
  }

  private async connect(signal: AbortSignal): Promise<Connected> {
    for (let tries = 1; ; tries++) {
      try {
        return await this.connectOnce(signal);
      } catch (error) {
        signal.throwIfAborted();
        if (tries === TRIES || !isTransient(error)) throw error;
        await delay(BACKOFF_MS * 2 ** tries, undefined, { signal });
      }
    }
  }

  /** Connects by the first link that the server supports. */
  private async connectOnce(signal: AbortSignal): Promise<Connected> {
    const [first, ...others] = this.options.links;
    if (!first) throw new Error('there is no way to the server');
    try {
      return await this.connectBy(first(), signal);
    } catch (error) {
      const [other] = others;
      if (!other || !isUnknownTransport(error)) throw error;
      return this.connectBy(other(), signal);
    }
  }

  private async connectBy(link: Link, signal: AbortSignal): Promise<Connected> {
    const timeout = this.options.connectTimeout;
    const client = new Client(CLIENT);
    client.onerror = this.options.onError;
    const gone = new Promise<never>((_resolve, reject) => {
      const stop = (): void =>
        reject(new Error(signal.aborted ? 'the turn was stopped' : 'it gives no answer in time'));
      AbortSignal.any([signal, AbortSignal.timeout(timeout)]).addEventListener('abort', stop, { once: true });
    });
    try {
      await Promise.race([client.connect(link.transport, { timeout, signal: ownSignal(signal) }), gone]);
      const connected = { client, link };
      this.made.push(connected);
      return connected;
    } catch (error) {
      await link.transport.close().catch(() => undefined);
      throw error;
    }
  }
}

/** A server of the older SSE transport answers the first message of the newer one like this. */
const isUnknownTransport = (error: unknown): boolean => [400, 404, 405].includes(httpStatus(error) ?? 0);

/** The SDK leaves a listener on each request's signal. A derived signal keeps the turn's signal free of them. */
const ownSignal = (signal: AbortSignal): AbortSignal => AbortSignal.any([signal]);

const MAX_LENGTH = 300;

/**
 * Explains an error of an MCP server to the tenant: a clause about the server.
 * @param redactor removes secrets that were sent to the server
 */
export function serverFailure(error: unknown, redactor = NOTHING_SECRET): string {
  const status = httpStatus(error);
  if (status === 401 || status === 403) return `it does not accept the credentials (HTTP ${status})`;
  if (status !== undefined) return `it answers with HTTP ${status}`;
  const isTimeout = error instanceof McpError && hasCode(error, ErrorCode.RequestTimeout);
  if (isTimeout) return 'it gives no answer in time';
  if (isUnknown(error)) return 'the connection broke, and what became of it is not known';
  if (codesOf(error).includes('ENOENT')) return 'its command was not found';
  const said = failureReason(error) ?? causesOf(error).at(-1)?.message ?? String(error);
  return redactor.text(said).slice(0, MAX_LENGTH);
}

/** The HTTP status of a server's refusal; undefined for other errors. */
export function httpStatus(error: unknown): number | undefined {
  const isHttp = error instanceof StreamableHTTPError || error instanceof SseError;
  return isHttp && error.code !== undefined && error.code > 0 ? error.code : undefined;
}

/** Whether a retry of the connection may succeed. */
export function isTransient(error: unknown): boolean {
  const status = httpStatus(error);
  if (status !== undefined) return status === 429 || status >= 500;
  return codesOf(error).some((code) => code !== 'ENOENT');
}

const NOT_SENT = new Set([
  'ECONNREFUSED',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ENOTFOUND',
  'UND_ERR_CONNECT_TIMEOUT',
]);

/** Whether the server certainly has not started the call. Then any call can be repeated. */
export function wasNotStarted(error: unknown): boolean {
  if (httpStatus(error) === 404 || isError(error, 'Not connected')) return true;
  return codesOf(error).some((code) => NOT_SENT.has(code));
}

const BROKEN = new Set(['ECONNRESET', 'EPIPE', 'UND_ERR_SOCKET']);

/** Whether the connection broke during the call, so that the outcome is unknown. */
export function isUnknown(error: unknown): boolean {
  if (error instanceof McpError) return hasCode(error, ErrorCode.ConnectionClosed);
  return codesOf(error).some((code) => BROKEN.has(code));
}

const hasCode = (error: McpError, code: number): boolean => error.code === code;

interface Cause {
  message: string;
  code?: unknown;
  cause?: unknown;
}

/** The error and its causes: fetch wraps errors. */
function causesOf(error: unknown): Cause[] {
  const chain: Cause[] = [];
  let cause = error;
  while (typeof cause === 'object' && cause !== null && 'message' in cause && chain.length < 10) {
    chain.push(cause as Cause);
    cause = (cause as Cause).cause;
  }
  return chain;
}

/** Error codes of the system and the HTTP client. Codes of the protocol are numbers. */
const codesOf = (error: unknown): string[] =>
  causesOf(error).flatMap(({ code }) => (typeof code === 'string' ? [code] : []));

const isError = (error: unknown, message: string): boolean => causesOf(error)[0]?.message === message;
