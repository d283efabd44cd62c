import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { ResultSchema } from '@modelcontextprotocol/sdk/types.js';
import type { Link } from './links.js';
import { McpFailure, failureOf, silence } from './mcp-failure.js';
import { isTimeout, isUnknown, isUnknownTransport, lostSession, wasNotStarted } from './failure-checks.js';
import { listPages } from './list-pages.js';
import { progressText } from './progress-text.js';
import { retryFailure } from './retry-failure.js';
import type { ServerCall, ServerConnection } from './server-connection.js';
import type { ListedTool, ToolList } from './tool-list.js';
import { EFFECT_KEY } from './wire-fetch.js';

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

/** A connection to one MCP server of a revision before 2026-07-28. It reconnects if the server has dropped the session. */
export class McpConnection implements ServerConnection {
  readonly era = 'legacy';
  instructions: string | undefined;
  private current: Promise<Connected> | undefined;
  /** All open connections: calls may still use a connection that another call found broken. */
  private readonly made: Connected[] = [];

  constructor(private readonly options: ConnectionOptions) {}

  /** Connects before the first request. */
  async open(signal: AbortSignal): Promise<void> {
    await this.connected(signal);
  }

  /** Connects if needed. */
  async listTools(list: ToolList, signal: AbortSignal): Promise<void> {
    const connected = await this.connected(signal);
    this.instructions = connected.client.getInstructions();
    if (!connected.client.getServerCapabilities()?.tools) return;
    await listPages(list, (params) => this.request(connected, 'tools/list', params, signal));
  }

  /**
   * Calls a tool. When `signal` aborts, this cancels the call at the server and rejects. A call that the server has answered is not
   * made again, whatever the answer is. `repeat: again` repeats a call once if the connection broke before an answer.
   * @returns the result as the server wrote it
   */
  async callTool(
    { name }: Pick<ListedTool, 'name'>,
    input: Record<string, unknown>,
    { repeat, key, signal, report }: ServerCall,
  ): Promise<unknown> {
    const params = { name, arguments: input, _meta: { [EFFECT_KEY]: key } };
    const send = (to: Connected): Promise<unknown> => this.request(to, 'tools/call', params, signal, report);
    return this.sentOver(send, repeat, signal);
  }

  readResource(uri: string, { signal, report }: Pick<ServerCall, 'signal' | 'report'>): Promise<unknown> {
    const send = (to: Connected): Promise<unknown> =>
      this.request(to, 'resources/read', { uri }, signal, report);
    return this.sentOver(send, 'again', signal);
  }

  /** Sends a request, and once more over a new connection if the first one was of no use. */
  private async sentOver(
    send: (to: Connected) => Promise<unknown>,
    repeat: ServerCall['repeat'],
    signal: AbortSignal,
  ): Promise<unknown> {
    const used = this.connected(signal);
    try {
      return await send(await used);
    } catch (error) {
      signal.throwIfAborted();
      this.forgetLost(used, error);
      if (!wasNotStarted(error) && !(repeat === 'again' && isUnknown(error))) throw error;
    }
    const other = this.connected(signal);
    try {
      return await send(await other);
    } catch (error) {
      this.forgetLost(other, error);
      throw error;
    }
  }

  /** Whether the server answers within `connectTimeout`, over the connection that it has. Never rejects. */
  async responds(): Promise<boolean> {
    const connected = await this.current?.catch(() => undefined);
    if (!connected) return false;
    const { connectTimeout: timeout } = this.options;
    try {
      await connected.client.request({ method: 'ping' }, ResultSchema, { timeout });
      return true;
    } catch (error) {
      // An error is an answer as well.
      return failureOf(error)?.kind === 'error';
    }
  }

  /** Closes the connections that no further call uses. @returns whether one is left. Never rejects. */
  async closeUnused(): Promise<boolean> {
    const current = await this.current?.catch(() => undefined);
    await this.closeAll(this.made.filter((made) => made !== current));
    return current !== undefined;
  }

  /** The next call connects again. */
  private forgetLost(used: Promise<Connected>, error: unknown): void {
    const isLost = wasNotStarted(error) || isUnknown(error) || lostSession(error);
    if (isLost && this.current === used) this.current = undefined;
  }

  /** Closes all connections. Never rejects. */
  async close(): Promise<void> {
    this.current = undefined;
    await this.closeAll([...this.made]);
  }

  private async closeAll(connections: readonly Connected[]): Promise<void> {
    await Promise.all(
      connections.map(async (connected) => {
        this.made.splice(this.made.indexOf(connected), 1);
        await connected.link.leave();
        await connected.client.close().catch(() => undefined);
      }),
    );
  }

  /** @returns the result, which may be any JSON value */
  private async request(
    { client, link }: Connected,
    method: 'tools/list' | 'tools/call' | 'resources/read',
    params: Record<string, unknown>,
    signal: AbortSignal,
    report?: ServerCall['report'],
  ): Promise<unknown> {
    const onprogress = (progress: object): void => {
      const text = progressText(progress);
      if (text !== undefined) report?.(text);
    };
    try {
      // WireAnswers has put the result there. The schemas of the SDK reject a whole answer for one odd part.
      const { value } = await client.request({ method, params }, ResultSchema, {
        signal: ownSignal(signal),
        timeout: this.options.timeout,
        // With a handler the SDK asks the server for progress, and progress resets the timeout.
        ...(method !== 'tools/list' && { onprogress, resetTimeoutOnProgress: true }),
      });
      return value;
    } catch (error) {
      // The report of a link that was closed before is about an earlier request.
      if (wasNotStarted(error)) throw error;
      throw await explained(error, link, () => silence('timeout', this.options.timeout));
    }
  }

  /** The shared connection of all calls. A failed one is replaced. */
  private connected(signal: AbortSignal): Promise<Connected> {
    if (this.current) return this.current;
    const made = retryFailure(() => this.connect(signal), signal);
    this.current = made;
    made.catch(() => {
      if (this.current === made) this.current = undefined;
    });
    return made;
  }

  /** Connects by the first link that the server supports. */
  private async connect(signal: AbortSignal): Promise<Connected> {
    const [first, other] = this.options.links;
    if (!first) throw new Error('there is no way to the server');
    try {
      return await this.connectBy(first(), signal);
    } catch (error) {
      if (!other || !isUnknownTransport(error)) throw error;
      try {
        return await this.connectBy(other(), signal);
      } catch (otherError) {
        // The server supports neither transport. Its first answer is more exact: the second one is mostly about the method GET.
        throw isUnknownTransport(otherError) ? error : otherError;
      }
    }
  }

  private async connectBy(link: Link, signal: AbortSignal): Promise<Connected> {
    const timeout = this.options.connectTimeout;
    const client = new Client(CLIENT);
    client.onerror = this.options.onError;
    const late = silence('connectTimeout', timeout);
    const gone = new Promise<never>((_resolve, reject) => {
      const stop = (): void => reject(signal.aborted ? new Error('the turn was stopped') : late);
      AbortSignal.any([signal, AbortSignal.timeout(timeout)]).addEventListener('abort', stop, { once: true });
    });
    try {
      await Promise.race([client.connect(link.transport, { timeout, signal: ownSignal(signal) }), gone]);
      const connected = { client, link };
      this.made.push(connected);
      return connected;
    } catch (error) {
      const reason = await explained(error, link, () => late);
      await link.transport.close().catch(() => undefined);
      throw reason;
    }
  }
}

/** The cause of a failed request: from the error, or else from the report of the link. */
async function explained(error: unknown, link: Link, late: () => McpFailure): Promise<unknown> {
  const known = isTimeout(error) ? late() : failureOf(error);
  const isClear = known !== undefined && known.kind !== 'broken' && known.kind !== 'silent';
  if (isClear && known.details.status === undefined) return known;
  const { failure, serverText } = await link.report();
  if (failure) return failure;
  return known?.kind === 'silent'
    ? new McpFailure('silent', known.message, { ...known.details, serverText: serverText ?? '' })
    : (known ?? error);
}

/** The SDK leaves a listener on each request's signal. A derived signal keeps the turn's signal free of them. */
const ownSignal = (signal: AbortSignal): AbortSignal => AbortSignal.any([signal]);
