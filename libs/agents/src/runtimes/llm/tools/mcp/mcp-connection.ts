import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import {
  type CallToolResult,
  CallToolResultSchema,
  ListToolsResultSchema,
  type Tool,
} from '@modelcontextprotocol/sdk/types.js';
import { setTimeout as delay } from 'node:timers/promises';
import { httpStatus, isUnknown, mayPass, wasNotTaken } from './server-failure.js';
import type { Link } from './links.js';

const TRIES = 3;
const BACKOFF_MS = 100;
const MAX_PAGES = 100;
const MAX_TOOLS = 1000;
/** Of all tools of a server, as JSON. */
const MAX_LIST_BYTES = 1024 * 1024;
const CLIENT = { name: 'baton', version: '1.0.0' };

export interface ConnectionOptions {
  /** Ways to the server, the preferred one first. Each is used once, and asked for again to connect again. */
  links: readonly (() => Link)[];
  /** In milliseconds: for a connection, and for a call without a sign of life. */
  connectTimeout: number;
  timeout: number;
  /** Called with what goes wrong besides. */
  onError: (error: Error) => void;
}

interface Connected {
  client: Client;
  link: Link;
}

/** There is more of a list of tools, or of one of them, than an agent takes in. */
export class ToolListExcess extends Error {}

/** A connection to one MCP server, for one turn. It is made again when the server has forgotten it. */
export class McpConnection {
  private current: Promise<Connected> | undefined;
  /** All that were made: calls may still be on their way over one that another call has found broken. */
  private readonly made: Connected[] = [];

  constructor(private readonly options: ConnectionOptions) {}

  /** All tools of the server, page by page. Connects first; rejects when that is not possible. */
  async listTools(signal: AbortSignal): Promise<Tool[]> {
    const { client } = await this.connected(signal);
    if (!client.getServerCapabilities()?.tools) return [];
    const tools: Tool[] = [];
    let bytes = 0;
    let cursor: string | undefined;
    for (let page = 0; page < MAX_PAGES; page++) {
      const request = { method: 'tools/list' as const, params: cursor === undefined ? {} : { cursor } };
      const options = { timeout: this.options.timeout, signal: ownSignal(signal) };
      // Not `client.listTools`: it compiles whatever schemas the server says its output has.
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
   * Call a tool. When `signal` aborts, the server is told to cancel and this rejects.
   * @param repeat what becomes of a call when the connection breaks: `again` makes it once more
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
      if (!wasNotTaken(error) && !(repeat === 'again' && isUnknown(error))) throw error;
      if (this.current === used) this.current = undefined;
      return this.request(await this.connected(signal), name, input, signal);
    }
  }

  /** Say goodbye, end what is left. Never rejects. */
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
      // With a handler the server is asked for progress, and progress is a sign of life.
      onprogress: () => undefined,
      resetTimeoutOnProgress: true,
    });
  }

  /** One connection for all calls; a new one after one that could not be made. */
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
        if (tries === TRIES || !mayPass(error)) throw error;
        await delay(BACKOFF_MS * 2 ** tries, undefined, { signal });
      }
    }
  }

  /** By the first way that the server knows. */
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

/** How a server of the older transport answers the first message of the newer one. */
const isUnknownTransport = (error: unknown): boolean => [400, 404, 405].includes(httpStatus(error) ?? 0);

/** The SDK leaves a listener on the signal of every request: not on the one that the turn lives with. */
const ownSignal = (signal: AbortSignal): AbortSignal => AbortSignal.any([signal]);
