import { ProtocolError } from '@baton/a2a';
import type { FastifyRequest } from 'fastify';

const TRACEPARENT = /^[\da-f]{2}-[\da-f]{32}-[\da-f]{16}-[\da-f]{2}$/;
const QUOTED = /^"((?:[ !#-[\]-~]|\\["\\])*)"$/;
const VISIBLE = /^[!-~]{1,255}$/;

/** `A2A-Version`: the header, or else the query parameter of that name (A2A 1.0 §3.6.1). */
export function requestedVersion(request: FastifyRequest): string | undefined {
  const header = one(request, 'a2a-version');
  if (header !== undefined) return header;
  const query = request.query as Record<string, unknown> | null;
  const parameter = query?.['A2A-Version'];
  return typeof parameter === 'string' ? parameter : undefined;
}

/** `Last-Event-ID`: the sequence after which a stream goes on. Throws `invalid-params` for anything else. */
export function lastEventId(request: FastifyRequest): number | undefined {
  const header = one(request, 'last-event-id')?.trim();
  if (header === undefined || header === '') return undefined;
  if (/^\d{1,15}$/.test(header)) return Number(header);
  throw ProtocolError.invalidParams('Last-Event-ID', 'must be the id of an event of this task: 0, 1, 2 …');
}

/**
 * `Idempotency-Key`: as it stands, or as the string of a structured field (RFC 8941 §3.3.3), as the IETF draft
 * has it. Throws `invalid-params` for anything else, two keys included.
 */
export function idempotencyKey(request: FastifyRequest): string | undefined {
  const header = one(request, 'idempotency-key')?.trim();
  if (header === undefined) return undefined;
  const quoted = QUOTED.exec(header)?.[1]?.replace(/\\(.)/g, '$1');
  const key = quoted ?? (header.startsWith('"') ? '' : header);
  if (VISIBLE.test(key)) return key;
  throw ProtocolError.invalidParams(
    'Idempotency-Key',
    'must be one key of 1 to 255 visible ASCII characters, such as a UUID that belongs to this message alone',
  );
}

/** The W3C trace context of the caller, if it is well formed. */
export function traceparent(request: FastifyRequest): string | undefined {
  const header = one(request, 'traceparent');
  return header !== undefined && TRACEPARENT.test(header) ? header : undefined;
}

/** Node joins a repeated header with commas; a list of a known header means its first value. */
function one(request: FastifyRequest, name: string): string | undefined {
  const value = request.headers[name];
  return Array.isArray(value) ? value[0] : value;
}
