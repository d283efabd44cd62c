import { originOf, programOrigin } from '@baton/a2a';
import type { Environment } from '@baton/config';
import type { Logger } from '@baton/telemetry';
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import type { FetchLike, Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import { ErrorCode } from '@modelcontextprotocol/sdk/types.js';
import { setTimeout as delay } from 'node:timers/promises';
import { type OutboundCalls, OutboundRefused } from '@baton/outbound';
import type { TurnSecrets } from '../../../../agent-runtime.js';
import {
  type McpServerConfig,
  type RemoteMcpServer,
  type SecretValue,
  type StdioMcpServer,
  whyNotAllowed,
} from './mcp-config.js';
import { StdioProcess } from './stdio-process.js';

/** Maximum size of an answer, or of an event of a stream. */
const MAX_BYTES = 8 * 1024 * 1024;
/** Maximum logged text of one write to standard error. */
const MAX_SAID = 2_000;
const HEADER_VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;

export interface LinkPorts {
  outbound: OutboundCalls;
  secrets: TurnSecrets;
  environment: Environment;
  log: Logger;
}

/** The links to a server, the preferred one first. Throws an Error with a plain reason. */
export async function linksTo(config: McpServerConfig, ports: LinkPorts): Promise<(() => Link)[]> {
  const destination = 'command' in config ? programOrigin(config.command, config.args) : originOf(config.url);
  const read = (name: string, value: SecretValue) => valueOf(name, value, destination, ports);
  if ('command' in config) return [stdioLink(config, await readAll(config.env, read), ports)];
  const headers = await readAll(config.headers, read);
  const bad = Object.keys(headers).find((name) => !HEADER_VALUE.test(headers[name] ?? ''));
  // Checked here, because the error of fetch would show the value.
  if (bad !== undefined)
    throw new Error(`the value of its header ${bad} holds characters that no header can have`);
  const fetch = ports.outbound.fetchWithin({ maxBytes: MAX_BYTES, json: true, limit: 'toolAnswer' });
  const link = (kind: HttpKind) => (): Link => httpLink(kind, new URL(config.url), headers, fetch);
  return kindsOf(config).map(link);
}

function kindsOf({ transport }: RemoteMcpServer): HttpKind[] {
  return transport === undefined ? ['http', 'sse'] : [transport];
}

function stdioLink(
  config: StdioMcpServer,
  env: Record<string, string>,
  { environment, log, secrets }: LinkPorts,
): () => Link {
  const { command, args } = config;
  const reason = whyNotAllowed({ command, args, env }, environment.mcpStdioAllow);
  if (reason !== undefined) throw new Error(reason);
  let held = '';
  const onStderr = (said: string): void => {
    const { ready: text, held: rest } = secrets.redactor.split(held + said);
    held = rest;
    log.debug('MCP server says', { text: text.slice(0, MAX_SAID) });
  };
  return () => {
    const transport = new StdioProcess({ command, args, env }, onStderr);
    // The SDK closes only an open transport. A crashed server may have left child processes.
    return { transport, leave: () => transport.close() };
  };
}

type Read = (name: string, value: SecretValue) => Promise<string>;

async function readAll(values: Record<string, SecretValue>, read: Read): Promise<Record<string, string>> {
  const entries = Object.entries(values).map(
    async ([name, value]) => [name, await read(name, value)] as const,
  );
  return Object.fromEntries(await Promise.all(entries));
}

async function valueOf(
  name: string,
  value: SecretValue,
  destination: string,
  { secrets }: LinkPorts,
): Promise<string> {
  if (typeof value === 'string') return value;
  const found = await secrets.get(value.secret, [destination]);
  if (found === undefined)
    throw new Error(`the secret "${value.secret}", which ${name} needs, does not exist`);
  return value.prefix + found;
}

/** A link to an MCP server, not yet connected. */
export interface Link {
  transport: Transport;
  /** Ends the session at the server. Takes up to a second and never rejects. The caller closes the transport after it. */
  leave(): Promise<void>;
}

// Some servers support only the older SSE transport.
/* oxlint-disable typescript/no-deprecated */

/** Maximum time to end a session. */
const GOODBYE_MS = 1000;

export type HttpKind = 'http' | 'sse';

/** A link over streamable HTTP, or over the older SSE transport. */
export function httpLink(kind: HttpKind, url: URL, headers: Record<string, string>, send: FetchLike): Link {
  return kind === 'http' ? streamableLink(url, headers, send) : sseLink(url, headers, send);
}

function streamableLink(url: URL, headers: Record<string, string>, send: FetchLike): Link {
  const watched = new WatchedFetch(send);
  const transport = new StreamableHTTPClientTransport(url, {
    fetch: watched.fetch,
    requestInit: { headers },
  });
  const leave = async (): Promise<void> => {
    // The server must still receive the cancel of a call.
    await watched.settled();
    await transport.terminateSession().catch(() => undefined);
  };
  return {
    transport,
    leave: () => Promise.race([leave(), delay(GOODBYE_MS, undefined, { ref: false })]),
  };
}

function sseLink(url: URL, headers: Record<string, string>, send: FetchLike): Link {
  const watched = new WatchedFetch(send);
  const transport = new SSEClientTransport(url, { fetch: watched.fetch, requestInit: { headers } });
  // This transport has one stream for all answers. When it breaks, no more answers arrive.
  const start = transport.start.bind(transport);
  transport.start = async () => {
    await start();
    const report = transport.onerror;
    transport.onerror = (error) => {
      report?.(error);
      void transport.close();
    };
  };
  const settled = (): Promise<unknown> => watched.settled();
  return {
    transport,
    leave: async () => {
      await Promise.race([settled(), delay(GOODBYE_MS, undefined, { ref: false })]);
    },
  };
}

const encoder = new TextEncoder();

/**
 * The fetch of an MCP connection. If the stream of a response ends early, the SDK waits until the request times out. So
 * this adds an error response as the last event. It also tracks the notifications that are being sent.
 */
export class WatchedFetch {
  private readonly notifying = new Set<Promise<unknown>>();

  constructor(private readonly send: FetchLike) {}

  /** Resolves when all notifications have been delivered or have failed. */
  async settled(): Promise<void> {
    await Promise.allSettled(this.notifying);
  }

  readonly fetch: FetchLike = async (url, init) => {
    const sending = this.send(url, init);
    const id = requestId(init);
    if (init?.method === 'POST' && id === undefined) this.follow(sending);
    const response = await sending;
    const { body, status, headers } = response;
    const isStream = headers.get('content-type')?.startsWith('text/event-stream');
    if (id === undefined || !response.ok || !body || !isStream) return response;
    return new Response(ReadableStream.from(withAnswer(body, id)), { status, headers });
  };

  private follow(sending: Promise<unknown>): void {
    this.notifying.add(sending);
    const done = (): boolean => this.notifying.delete(sending);
    sending.then(done, done);
  }
}

type RequestId = string | number;

/** Adds an error response if the stream ends early. */
async function* withAnswer(body: ReadableStream<Uint8Array>, id: RequestId): AsyncGenerator<Uint8Array> {
  let resumable = false;
  let reason = 'the connection ended before the answer';
  try {
    for await (const chunk of body) {
      // The SDK resumes a stream whose events have ids.
      resumable ||= /^id:/m.test(Buffer.from(chunk).toString('latin1'));
      yield chunk;
    }
  } catch (error) {
    if (resumable) throw error;
    if (error instanceof OutboundRefused) reason = error.message;
  }
  if (resumable) return;
  const error = { code: ErrorCode.ConnectionClosed, message: reason };
  yield encoder.encode(`\n\ndata: ${JSON.stringify({ jsonrpc: '2.0', id, error })}\n\n`);
}

function requestId(init: RequestInit | undefined): RequestId | undefined {
  if (typeof init?.body !== 'string') return undefined;
  // oxlint-disable-next-line no-restricted-properties -- the SDK in this process wrote it
  const { id, method } = JSON.parse(init.body) as { id?: RequestId; method?: string };
  return method === undefined ? undefined : id;
}
