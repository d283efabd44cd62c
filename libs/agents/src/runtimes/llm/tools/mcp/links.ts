import { originOf, programOrigin } from '@baton/a2a';
import type { Environment } from '@baton/config';
import { type Logger, within } from '@baton/telemetry';
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import type { FetchLike, Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import type { OutboundCalls } from '@baton/outbound';
import type { TurnSecrets } from '../../../../agent-runtime.js';
import type { Redactor } from '../../../../outbound/redactor.js';
import { SignedInFetch } from '../../../../outbound/signed-in-fetch.js';
import {
  type McpServerConfig,
  type RemoteMcpServer,
  type SecretValue,
  type StdioMcpServer,
  whyNotAllowed,
} from './mcp-config.js';
import type { LinkReport } from './link-report.js';
import { type StdioCommand, StdioProcess } from './stdio-process.js';
import { WireAnswers } from './wire-answers.js';
import { WireFetch } from './wire-fetch.js';

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
  /** For a server with `oauth`. Default: a new one. */
  signedIn?: SignedInFetch | undefined;
}

/** How to reach a server: links for the revisions with sessions, the preferred one first, and how to call a modern server. */
export interface ServerLinks {
  links: (() => Link)[];
  /** Unset: the server is a program, or its settings name an older transport. */
  modern?: { url: string; headers: Record<string, string>; send: FetchLike };
}

/** Reads the secrets of a server and makes its links. Throws an Error with a plain reason. */
export async function linksTo(config: McpServerConfig, ports: LinkPorts): Promise<ServerLinks> {
  if ('command' in config) {
    const { log, secrets } = ports;
    const line = await programOf(config, ports);
    return { links: [programLink(line, () => ({ log, redactor: secrets.redactor }))] };
  }
  const destination = originOf(config.url);
  const read = (name: string, value: SecretValue) => valueOf(name, value, destination, ports);
  const headers = await readAll(config.headers, read);
  const bad = Object.keys(headers).find((name) => !HEADER_VALUE.test(headers[name] ?? ''));
  // Checked here, because the error of fetch would show the value.
  if (bad !== undefined)
    throw new Error(`the value of its header ${bad} holds characters that no header can have`);
  const guarded = ports.outbound.fetchWithin({ maxBytes: MAX_BYTES, json: true, limit: 'toolAnswer' });
  const signedIn = ports.signedIn ?? signedInFetch(config, ports);
  await signedIn?.assertSignedIn();
  const fetch = signedIn?.over(guarded) ?? guarded;
  const link = (kind: HttpKind) => (): Link => httpLink(kind, new URL(config.url), headers, fetch);
  const links = kindsOf(config).map(link);
  return config.transport === 'sse'
    ? { links }
    : { links, modern: { url: config.url, headers, send: fetch } };
}

/** For a server with `oauth`. */
export function signedInFetch(
  config: McpServerConfig,
  { secrets }: Pick<LinkPorts, 'secrets'>,
): SignedInFetch | undefined {
  return 'url' in config && config.oauth ? new SignedInFetch(secrets, config.url, config.oauth) : undefined;
}

function kindsOf({ transport }: RemoteMcpServer): HttpKind[] {
  return transport === undefined ? ['http', 'sse'] : [transport];
}

/** The command of a server with its secrets. Throws an Error with a plain reason. */
export async function programOf(
  { command, args, env: variables }: StdioMcpServer,
  ports: Pick<LinkPorts, 'environment' | 'secrets'>,
): Promise<StdioCommand> {
  const destination = programOrigin(command, args);
  const read = (name: string, value: SecretValue) => valueOf(name, value, destination, ports);
  const env = await readAll(variables, read);
  const reason = whyNotAllowed({ command, args, env }, ports.environment.mcpStdioAllow);
  if (reason !== undefined) throw new Error(reason);
  return { command, args, env };
}

/** The log of the turn that uses a program. */
export interface ProgramLog {
  log: Logger;
  redactor: Redactor;
}

/** @param onEnd called when a process of the link has ended */
export function programLink(
  line: StdioCommand,
  current: () => ProgramLog,
  onEnd: () => void = () => undefined,
): () => Link {
  let held = '';
  const onStderr = (chunk: string): void => {
    const { log, redactor } = current();
    const { ready: text, held: rest } = redactor.split(held + chunk);
    held = rest;
    log.debug('MCP server says', { text: text.slice(0, MAX_SAID) });
  };
  return () => {
    const transport = new StdioProcess(line, onStderr);
    // The SDK keeps it beside its own.
    transport.onclose = onEnd;
    return {
      transport,
      report: () => transport.report(),
      // The SDK closes only an open transport. A crashed server may have left child processes.
      leave: () => transport.close(),
    };
  };
}

type ReadSecret = (name: string, value: SecretValue) => Promise<string>;

async function readAll(
  values: Record<string, SecretValue>,
  read: ReadSecret,
): Promise<Record<string, string>> {
  const entries = Object.entries(values).map(
    async ([name, value]) => [name, await read(name, value)] as const,
  );
  return Object.fromEntries(await Promise.all(entries));
}

async function valueOf(
  name: string,
  value: SecretValue,
  destination: string,
  { secrets }: Pick<LinkPorts, 'secrets'>,
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
  /** Facts about the server after a failed request that the SDK does not report. Never rejects. */
  report(): Promise<LinkReport>;
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
  const watched = new WireFetch(send, new WireAnswers(), true);
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
    // Failed requests are reported by their own promises. A stream of other messages is optional.
    report: () => Promise.resolve({}),
    leave: () => within(leave(), GOODBYE_MS),
  };
}

function sseLink(url: URL, headers: Record<string, string>, send: FetchLike): Link {
  const watched = new WireFetch(send, new WireAnswers(), false);
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
    report: () => Promise.resolve({ failure: watched.refusal }),
    leave: async () => {
      await within(settled(), GOODBYE_MS);
    },
  };
}
