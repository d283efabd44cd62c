import { type Agent, ProtocolError } from '@baton/a2a';
import type { FastifyRequest } from 'fastify';

/** What 1.0 calls the header (A2A 1.0 §3.2.6), and what 0.3 called it. */
const HEADERS = ['A2A-Extensions', 'X-A2A-Extensions'] as const;

/** What caller and agent agreed on. */
export interface NegotiatedExtensions {
  /** URIs the caller asked for and the agent declares. */
  active: readonly string[];
  /** Tells the caller which are active, under the header names it used itself. */
  headers: Record<string, string>;
}

/**
 * Match the extensions a caller asks for with those the agent declares. What the agent does not declare is
 * ignored. Throws `extension-required` naming the ones the agent insists on and the caller left out.
 */
export function negotiateExtensions(request: FastifyRequest, agent: Agent): NegotiatedExtensions {
  const declared = agent.definition.extensions;
  if (declared.length === 0) return { active: [], headers: {} };
  const asked = new Set(HEADERS.flatMap((name) => urisOf(request.headers[name.toLowerCase()])));
  const missing = declared.filter(({ uri, required }) => required && !asked.has(uri)).map(({ uri }) => uri);
  if (missing.length > 0) throw extensionRequired(missing);
  const active = declared.map(({ uri }) => uri).filter((uri) => asked.has(uri));
  const used = HEADERS.filter((name) => request.headers[name.toLowerCase()] !== undefined);
  const headers = Object.fromEntries(used.map((name) => [name, active.join(', ')]));
  return { active, headers: active.length > 0 ? headers : {} };
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
