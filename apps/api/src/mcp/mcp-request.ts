import { type Envelope, type JsonObject, shortened } from '@baton/a2a';
import type { IncomingHttpHeaders } from 'node:http';
import { McpError } from './mcp-error.js';

/** The revision without sessions, in which each request has all data about its client. */
export const MODERN = '2026-07-28';
/** Earlier revisions, in which clients begin with `initialize`; the newest first. Baton keeps no session of theirs. */
const LEGACY: readonly string[] = ['2025-11-25', '2025-06-18', '2025-03-26'];
export const VERSIONS: readonly string[] = [MODERN, ...LEGACY];

const PROTOCOL_VERSION = 'io.modelcontextprotocol/protocolVersion';
const CAPABILITIES = 'io.modelcontextprotocol/clientCapabilities';
/** The extension by which a tool call becomes a task. */
export const TASKS = 'io.modelcontextprotocol/tasks';

/** The member of the params that the header `Mcp-Name` repeats, by method. */
const NAMES: Readonly<Record<string, string>> = {
  'tools/call': 'name',
  'resources/read': 'uri',
  'prompts/get': 'name',
};

/** A request of MCP, of any revision. */
export interface McpRequest {
  readonly id: string | number;
  readonly method: string;
  readonly params: Readonly<JsonObject>;
  readonly meta: Readonly<JsonObject>;
  /** Whether it is of the revision without sessions. */
  readonly isModern: boolean;
  /** What the client can do; nothing is known of a client of an earlier revision. */
  readonly capabilities: Readonly<JsonObject>;
}

/** What a version that `initialize` asks for becomes. */
export const negotiated = (version: unknown): string =>
  LEGACY.find((known) => known === version) ?? LEGACY[0] ?? MODERN;

/**
 * Reads a request. If several things are wrong, the first of these is answered: id, params, `_meta`, headers, version.
 * @throws McpError
 */
export function readRequest({ id, method, params }: Envelope, headers: IncomingHttpHeaders): McpRequest {
  if (id === null) throw new McpError('badRequest', 'id: must be a string or an integer');
  const members = objectAt(params ?? {}, 'params');
  const meta = objectAt(members._meta ?? {}, 'params._meta');
  const request = { id, method, params: members, meta };
  const version = headers['mcp-protocol-version'];
  const revision = meta[PROTOCOL_VERSION];
  if (isLegacy(method, revision ?? version)) return { ...request, isModern: false, capabilities: {} };
  if (revision === undefined && version !== MODERN && method !== 'server/discover')
    throw unsupported(version);
  if (typeof revision !== 'string')
    throw missing(`params._meta["${PROTOCOL_VERSION}"]`, 'the version, as a text');
  const capabilities = meta[CAPABILITIES];
  if (capabilities === undefined)
    throw missing(`params._meta["${CAPABILITIES}"]`, 'an object, which may be empty');
  assertHeaders(request, revision, headers);
  if (revision !== MODERN) throw unsupported(revision);
  return {
    ...request,
    isModern: true,
    capabilities: objectAt(capabilities, `params._meta["${CAPABILITIES}"]`),
  };
}

/** Whether the client has declared the extension of tasks. */
export function declaresTasks({ capabilities: { extensions } }: McpRequest): boolean {
  return typeof extensions === 'object' && extensions !== null && Object.hasOwn(extensions, TASKS);
}

/** Clients of earlier revisions send a version after the handshake, or never. */
function isLegacy(method: string, version: unknown): boolean {
  if (method === 'server/discover') return false;
  if (version === undefined) return true;
  return typeof version === 'string' && LEGACY.includes(version);
}

function assertHeaders(
  { method, params }: Pick<McpRequest, 'method' | 'params'>,
  version: string,
  headers: IncomingHttpHeaders,
): void {
  assertHeader('MCP-Protocol-Version', headers['mcp-protocol-version'], version);
  assertHeader('Mcp-Method', headers['mcp-method'], method);
  const name = headers['mcp-name'];
  // FastMCP 4.1.4 leaves it out here, and nothing is routed by it.
  if (method.startsWith('tasks/') && name === undefined) return;
  const member = method.startsWith('tasks/') ? 'taskId' : NAMES[method];
  const named = member === undefined ? undefined : params[member];
  // A request without the member is refused for that.
  if (typeof named === 'string')
    assertHeader('Mcp-Name', name === undefined ? name : decoded(String(name)), named);
}

function assertHeader(name: string, header: string | string[] | undefined, wanted: string): void {
  if (header === wanted) return;
  const shown = shortened(String(header), 128);
  const what = header === undefined ? 'the header is missing' : `the header says "${shown}"`;
  throw new McpError(
    'headerMismatch',
    `${name}: ${what}, and the body "${shortened(wanted, 128)}": send the same in both`,
  );
}

const ENCODED = /^=\?base64\?([A-Za-z0-9+/=]*)\?=$/;

/** A value that may be encoded, because it is no plain ASCII. */
function decoded(header: string): string {
  const base64 = ENCODED.exec(header)?.[1];
  return base64 === undefined ? header : Buffer.from(base64, 'base64').toString('utf8');
}

/** @throws McpError if it is no object */
export function objectAt(value: unknown, field: string): JsonObject {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as JsonObject;
  throw new McpError('badMeta', `${field}: must be an object`);
}

const missing = (field: string, what: string): McpError =>
  new McpError('badMeta', `${field}: is required: ${what}`);

const unsupported = (version: unknown): McpError => {
  const requested = shortened(String(version), 64);
  return new McpError('unsupportedVersion', `Unsupported protocol version: ${requested}`, {
    supported: VERSIONS,
    requested,
  });
};
