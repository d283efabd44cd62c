import type { Environment } from '@baton/config';
import type { Logger } from '@baton/telemetry';
import type { Outbound } from '../../../../outbound/outbound.js';
import type { SecretReader } from '../../../../secret-reader.js';
import { type HttpKind, httpLink } from './http-link.js';
import type { Link } from './link.js';
import type { McpServerConfig, RemoteMcpServer, SecretValue, StdioMcpServer } from './mcp-config.js';
import { whyNotAllowed } from './stdio-allowance.js';
import { StdioProcess } from './stdio-process.js';

/** Of an answer, or of one event of a stream. */
const MAX_BYTES = 8 * 1024 * 1024;
/** Of what a process writes to its standard error at once. */
const MAX_SAID = 2_000;
const HEADER_VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;

export interface LinkPorts {
  outbound: Outbound;
  secrets: SecretReader;
  environment: Environment;
  log: Logger;
  /** Told each value of a secret, to be kept out of whatever is shown. */
  secret: (value: string) => void;
}

/** The ways to a server, the preferred one first. Throws an Error with a plain reason. */
export async function linksTo(
  config: McpServerConfig,
  tenantId: string,
  ports: LinkPorts,
): Promise<(() => Link)[]> {
  const read = (name: string, value: SecretValue) => valueOf(name, value, tenantId, ports);
  if ('command' in config) return [stdioLink(config, await readAll(config.env, read), ports)];
  const headers = await readAll(config.headers, read);
  const bad = Object.keys(headers).find((name) => !HEADER_VALUE.test(headers[name] ?? ''));
  // Not left to fetch, whose error shows the value.
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
  { environment, log }: LinkPorts,
): () => Link {
  const { command, args } = config;
  const reason = whyNotAllowed({ command, args, env }, environment.mcpStdioAllow);
  if (reason !== undefined) throw new Error(reason);
  const onStderr = (text: string): void => log.debug('MCP server says', { text: text.slice(0, MAX_SAID) });
  return () => {
    const transport = new StdioProcess({ command, args, env }, onStderr);
    // The SDK closes only what it thinks is open: a server that has crashed may have left something behind.
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
  tenantId: string,
  { secrets, secret }: LinkPorts,
): Promise<string> {
  if (typeof value === 'string') return value;
  const found = (await secrets.get(tenantId, value.secret))?.trim();
  if (found === undefined)
    throw new Error(`the secret "${value.secret}", which ${name} needs, does not exist`);
  secret(found);
  return value.prefix + found;
}
