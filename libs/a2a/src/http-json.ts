import type { ErrorKind } from './errors.js';
import type { ProtocolError } from './protocol-error.js';
import { encodeRpcError, errorWire } from './json-rpc.js';

/** What an error is in HTTP: its status, and the name that google.rpc.Code has for it. */
export interface HttpErrorWire {
  http: number;
  status: string;
}

const INVALID: HttpErrorWire = { http: 400, status: 'INVALID_ARGUMENT' };
const FAILED: HttpErrorWire = { http: 400, status: 'FAILED_PRECONDITION' };

/** Errors that have status 200 in JSON-RPC (A2A 1.0 §5.4), and those whose name does not follow from the status. */
const BY_KIND: Partial<Record<ErrorKind, HttpErrorWire>> = {
  parse: INVALID,
  'invalid-request': INVALID,
  'invalid-params': INVALID,
  'content-type-not-supported': INVALID,
  'task-not-found': { http: 404, status: 'NOT_FOUND' },
  'method-not-found': { http: 404, status: 'NOT_FOUND' },
  'task-not-cancelable': FAILED,
  'task-canceled': FAILED,
  'push-not-supported': FAILED,
  'unsupported-operation': FAILED,
  'agent-disabled': FAILED,
  'extended-card-not-configured': FAILED,
  'extension-required': FAILED,
  'version-not-supported': FAILED,
  unavailable: { http: 503, status: 'UNAVAILABLE' },
};

/** The name of each status in google.rpc.Code; that of any other below 500 is INVALID_ARGUMENT. */
const STATUS_NAMES: Readonly<Record<number, string>> = {
  401: 'UNAUTHENTICATED',
  403: 'PERMISSION_DENIED',
  404: 'NOT_FOUND',
  408: 'DEADLINE_EXCEEDED',
  409: 'ABORTED',
  412: 'FAILED_PRECONDITION',
  429: 'RESOURCE_EXHAUSTED',
  500: 'INTERNAL',
  501: 'UNIMPLEMENTED',
  503: 'UNAVAILABLE',
};

/** The HTTP status and the canonical name of an error, outside of JSON-RPC. */
export function httpErrorWire(kind: ErrorKind): HttpErrorWire {
  const known = BY_KIND[kind];
  if (known) return known;
  const { http } = errorWire(kind);
  const status = http === 200 ? 500 : http;
  return { http: status, status: STATUS_NAMES[status] ?? 'INVALID_ARGUMENT' };
}

/**
 * The body of an HTTP+JSON error (A2A 1.0 §11.6, AIP-193). Clients of 0.3 read the JSON-RPC error at the top of the
 * body, so version `0.3` has both.
 */
export function encodeHttpError(error: ProtocolError, version: string): Record<string, unknown> {
  const { http, status } = httpErrorWire(error.kind);
  const { message, data } = encodeRpcError(error);
  const body = { error: { code: http, status, message, details: data } };
  return version.startsWith('0.') ? { ...encodeRpcError(error, {}, version), ...body } : body;
}
