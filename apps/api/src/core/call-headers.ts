import {
  type Agent,
  type AgentLabel,
  ProtocolError,
  requireScope,
  RESUME_EXTENSION,
  type Scope,
} from '@baton/a2a';
import { isTraceparent } from '@baton/telemetry';
import type { CallRequest } from '../http/requests.js';

const QUOTED = /^"((?:[ !#-[\]-~]|\\["\\])*)"$/;
const LABEL_NEXT = /^next(?:\s*;\s*version=(\d{1,9}))?$/;
const VISIBLE = /^[!-~]{1,255}$/;

/** `A2A-Version`: the header, or else the query parameter of that name (A2A 1.0 §3.6.1). */
export function requestedVersion(request: CallRequest): string | undefined {
  const header = headerOf(request, 'a2a-version');
  if (header !== undefined) return header;
  const query = request.query as Record<string, unknown> | null;
  const parameter = query?.['A2A-Version'];
  return typeof parameter === 'string' ? parameter : undefined;
}

/** `Last-Event-ID`: the sequence after which a stream continues. Throws `invalid-params` for anything else. */
export function lastEventId(request: CallRequest): number | undefined {
  const header = headerOf(request, 'last-event-id')?.trim();
  if (header === undefined || header === '') return undefined;
  if (/^\d{1,15}$/.test(header)) return Number(header);
  throw ProtocolError.invalidParams('Last-Event-ID', 'must be the id of an event of this task: 0, 1, 2 …');
}

/**
 * `Idempotency-Key`: as it stands, or as the string of a structured field (RFC 8941 §3.3.3), as the IETF draft
 * has it. Throws `invalid-params` for anything else, two keys included.
 */
export function idempotencyKey(request: CallRequest): string | undefined {
  const header = headerOf(request, 'idempotency-key')?.trim();
  if (header === undefined) return undefined;
  const quoted = QUOTED.exec(header)?.[1]?.replace(/\\(.)/g, '$1');
  const key = quoted ?? (header.startsWith('"') ? '' : header);
  if (VISIBLE.test(key)) return key;
  throw ProtocolError.invalidParams(
    'Idempotency-Key',
    'must be one key of 1 to 255 visible ASCII characters, such as a UUID that belongs to this message alone',
  );
}

/** What `Baton-Agent-Label` asks for. */
interface WantedLabel {
  label: AgentLabel;
  /** Only if this version has the label `next`. */
  version?: number;
}

/**
 * `Baton-Agent-Label`: the version with which a new task begins: `stable`, `next`, or `next; version=3`. Throws `forbidden` for callers
 * who may not write agents, whether there is such a version or not.
 */
export function wantedLabel(request: CallRequest, scopes: readonly Scope[]): WantedLabel | undefined {
  const header = headerOf(request, 'baton-agent-label')?.trim();
  if (header === undefined || header === '') return undefined;
  requireScope(['agents:write'], scopes);
  if (header === 'stable') return { label: header };
  const next = LABEL_NEXT.exec(header);
  if (!next) {
    throw ProtocolError.invalidParams(
      'Baton-Agent-Label',
      'must be next or stable, or next; version=<number>',
    );
  }
  return { label: 'next', ...(next[1] !== undefined && { version: Number(next[1]) }) };
}

/** The error for an agent without the wanted version. Undefined: the agent has it. */
export function missingLabel(
  { label, version }: WantedLabel,
  { slug, labels }: Agent,
): ProtocolError | undefined {
  if (label === 'stable') return undefined;
  const next = labels?.next;
  if (!next?.definition) {
    return ProtocolError.invalidParams(
      'Baton-Agent-Label',
      `no version of the agent ${slug} has the label next: give it to one with PUT /v1/agents/${slug}/next`,
    );
  }
  if (version === undefined || version === next.version) return undefined;
  return new ProtocolError(
    'conflict',
    `version ${next.version} of the agent ${slug} has the label next, not version ${version}: another author may have given it away`,
  );
}

/** The W3C trace context of the caller, if it is well formed. @param otherwise without such a header */
export function traceparent(request: CallRequest, otherwise?: string): string | undefined {
  const header = headerOf(request, 'traceparent') ?? otherwise;
  return header !== undefined && isTraceparent(header) ? header : undefined;
}

/** The value of a header. Node joins the values of a repeated header with commas; of an array, the first value counts. */
function headerOf(request: CallRequest, name: string): string | undefined {
  const value = request.headers[name];
  return Array.isArray(value) ? value[0] : value;
}

/** What 1.0 calls the header (A2A 1.0 §3.2.6), and what 0.3 called it. */
const EXTENSION_HEADERS = ['A2A-Extensions', 'X-A2A-Extensions'] as const;

/** The negotiated extensions. */
export interface NegotiatedExtensions {
  /** URIs that the caller asked for and the agent declares. The runtime of the agent gets them. */
  active: readonly string[];
  /**
   * Tells the caller which are active, under the header names it used itself.
   * @param activated by the agent in its run
   */
  headers: (activated?: readonly string[]) => Record<string, string>;
}

/** An extension that an agent names goes into a header, so it must be a URI without a comma. */
const EXTENSION_URI = /^[\x21-\x2b\x2d-\x7e]{1,255}$/;
/** Maximum number of URIs that the agent adds: they stay below the 8 KiB that proxies allow for a header. */
const MAX_ACTIVATED = 20;
const NO_HEADERS = (): Record<string, string> => ({});

/**
 * Match the extensions that a caller asks for with those that the agent declares. Others are ignored. Throws
 * `extension-required`, which names the required extensions that the caller left out.
 */
export function negotiateExtensions(request: CallRequest, agent: Agent): NegotiatedExtensions {
  const declared = agent.definition.extensions;
  const used = EXTENSION_HEADERS.filter((name) => request.headers[name.toLowerCase()] !== undefined);
  if (declared.length === 0 && used.length === 0) return { active: [], headers: NO_HEADERS };
  const asked = new Set(used.flatMap((name) => urisOf(request.headers[name.toLowerCase()])));
  const missing = declared.filter(({ uri, required }) => required && !asked.has(uri)).map(({ uri }) => uri);
  if (missing.length > 0) throw extensionRequired(missing);
  const active = declared.map(({ uri }) => uri).filter((uri) => asked.has(uri));
  // Streams have it whether the caller asks for it or not.
  const echoed = asked.has(RESUME_EXTENSION.uri) ? [...active, RESUME_EXTENSION.uri] : active;
  const headers = (activated: readonly string[] = []): Record<string, string> => {
    const uris = activated.filter((uri) => EXTENSION_URI.test(uri)).slice(0, MAX_ACTIVATED);
    const list = [...new Set([...echoed, ...uris])].join(', ');
    return list === '' ? {} : Object.fromEntries(used.map((name) => [name, list]));
  };
  return { active, headers };
}

function urisOf(header: string | string[] | undefined): string[] {
  if (header === undefined) return [];
  const text = Array.isArray(header) ? header.join(',') : header;
  return text
    .split(',')
    .map((uri) => uri.trim())
    .filter((uri) => uri !== '');
}

function extensionRequired(missing: readonly string[]): ProtocolError {
  const list = missing.join(', ');
  return new ProtocolError(
    'extension-required',
    `this agent requires an extension: send it in the A2A-Extensions header: ${list}`,
    { metadata: { extensions: list } },
  );
}
