import { A2A_ERROR_DOMAIN, ERROR_INFO_TYPE } from '@a2a-js/sdk/errors';
import { ERRORS, type ErrorKind, type ErrorWire } from './errors.js';
import { ProtocolError } from './protocol-error.js';
import { assertJsonLimits, excessError } from './json-limits.js';
import { EnvelopeError, type RpcId } from './envelope-error.js';
import { JsonScanner } from './json-scanner.js';

/** A JSON-RPC 2.0 request. Its `params` are not checked yet. */
export interface Envelope {
  /** `null` if the request has none or has `null`. */
  id: RpcId;
  /** False for a notification: the work is done, nothing is answered. */
  hasId: boolean;
  method: string;
  /** Checked by the codec of the method. */
  params: unknown;
}

/** Ids are echoed in every frame of a stream, so their size is bounded. */
const MAX_ID_LENGTH = 4096;

/**
 * Read a JSON-RPC 2.0 request. Throws `EnvelopeError`: `parse` if it is not JSON, `invalid-request` (naming the member) if it is
 * not a single request.
 */
export function decodeEnvelope(bodyText: string): Envelope {
  const body = parseBody(bodyText);
  if (Array.isArray(body)) {
    throw refuse('batch requests are not supported: send one request per call', null);
  }
  if (typeof body !== 'object' || body === null) throw refuse('a request must be a JSON object', null);
  const request = body as Record<string, unknown>;
  const id = readId(request);
  assertLimits(body, id);
  if (request.jsonrpc !== '2.0') throw refuseField('jsonrpc', 'must be exactly "2.0"', id);
  if (typeof request.method !== 'string' || request.method === '') {
    throw refuseField('method', 'must be the name of a method, as a string', id);
  }
  if (!request.method.isWellFormed()) throw refuseField('method', 'must be well-formed Unicode', id);
  return { id, hasId: Object.hasOwn(request, 'id'), method: request.method, params: request.params };
}

/** The answer to a request that went well. */
export const encodeEnvelope = (
  id: RpcId,
  result: unknown,
): { jsonrpc: '2.0'; id: RpcId; result: unknown } => ({
  jsonrpc: '2.0',
  id,
  result,
});

/** The text of a response, around the JSON of a result. */
export const envelopeAround = (id: RpcId, resultJson: string): string =>
  `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":${resultJson}}`;

/** The answer to a request that failed; `id` is `null` if it could not be read. */
export const encodeErrorEnvelope = (
  id: RpcId,
  error: RpcError,
): { jsonrpc: '2.0'; id: RpcId; error: RpcError } => ({ jsonrpc: '2.0', id, error });

/** Depth and number of values are counted before the text is parsed: parsing 16 MB of `[` takes seconds. */
function parseBody(text: string): unknown {
  if (text.trim() === '') {
    throw new EnvelopeError('parse', 'the body is empty: send a JSON-RPC 2.0 request as JSON', null);
  }
  const bytes = Buffer.from(text);
  const scanner = new JsonScanner();
  const excess = scanner.scan(bytes);
  if (excess) {
    const { kind, message, detail } = excessError(excess);
    throw new EnvelopeError(kind, message, idBefore(bytes.subarray(0, scanner.lastMemberEnd ?? 0)), detail);
  }
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new EnvelopeError('parse', `the body is not JSON: ${(error as Error).message}`, null);
  }
}

/** The id of a request, if it comes before the excess. */
function idBefore(members: Buffer): RpcId {
  try {
    return readId(JSON.parse(`${members.toString()}}`) as Record<string, unknown>);
  } catch {
    return null;
  }
}

function readId(request: Record<string, unknown>): RpcId {
  const { id } = request;
  if (id === undefined || id === null) return null;
  if (typeof id === 'string') {
    if (!id.isWellFormed()) throw refuseField('id', 'must be well-formed Unicode', null);
    if (id.length <= MAX_ID_LENGTH) return id;
    throw refuseField('id', `must not be longer than ${MAX_ID_LENGTH} characters`, null);
  }
  if (typeof id !== 'number') throw refuseField('id', 'must be a string, an integer or null', null);
  if (Number.isSafeInteger(id)) return id;
  throw refuseField('id', 'must be an integer below 2^53: send larger or fractional ids as a string', null);
}

function assertLimits(body: object, id: RpcId): void {
  try {
    assertJsonLimits(body);
  } catch (error) {
    if (!(error instanceof ProtocolError)) throw error;
    throw new EnvelopeError(error.kind, error.message, id, error.detail);
  }
}

const refuse = (message: string, id: RpcId, field?: string): EnvelopeError =>
  new EnvelopeError(
    'invalid-request',
    field ? `${field}: ${message}` : message,
    id,
    field ? { violations: [{ field, description: message }] } : {},
  );

const refuseField = (field: string, message: string, id: RpcId): EnvelopeError => refuse(message, id, field);

const BAD_REQUEST_TYPE = 'type.googleapis.com/google.rpc.BadRequest';
const RETRY_INFO_TYPE = 'type.googleapis.com/google.rpc.RetryInfo';

/** What one profile writes differently from the specification about one kind of error. */
export interface ErrorOverride extends Partial<ErrorWire> {
  message?: (error: ProtocolError) => string;
  /** The whole `data` member, made of the error and of the ErrorInfo it would hold otherwise. */
  data?: (error: ProtocolError, info: ErrorInfo) => unknown;
}

/** What one profile writes differently from the specification, by error kind. */
export type ErrorOverrides = Partial<Record<ErrorKind, ErrorOverride>>;

/** `google.rpc.ErrorInfo` in JSON. */
export interface ErrorInfo {
  '@type': string;
  reason: string;
  domain: string;
  metadata?: Record<string, string>;
}

/** The `error` member of a JSON-RPC answer. */
export interface RpcError {
  code: number;
  message: string;
  data?: unknown;
}

/** The wire form of an error kind: the specification's, with what the profile writes differently. */
export function errorWire(kind: ErrorKind, overrides: ErrorOverrides = {}): ErrorWire {
  const { code, http, reason }: ErrorWire = { ...ERRORS[kind], ...overrides[kind] };
  return { code, http, reason };
}

/**
 * The `error` member of a JSON-RPC answer. `data` holds `google.rpc.ErrorInfo` and, where fields are wrong,
 * `google.rpc.BadRequest` (A2A 1.0 §9.5); where the same request may be sent again later, `google.rpc.RetryInfo`.
 * Version `0.3` gets one object instead of the list: clients of that generation read `data` as a map and some
 * fail on a list.
 */
export function encodeRpcError(
  error: ProtocolError,
  overrides: ErrorOverrides = {},
  version = '1.0',
): RpcError {
  const { code, reason } = errorWire(error.kind, overrides);
  const { metadata, violations, retryAfterSeconds } = error.detail;
  const override = overrides[error.kind];
  const message = override?.message?.(error) ?? error.message;
  const info: ErrorInfo = {
    '@type': ERROR_INFO_TYPE,
    reason,
    domain: A2A_ERROR_DOMAIN,
    ...(metadata && { metadata }),
  };
  if (override?.data) return { code, message, data: override.data(error, info) };
  const fields = violations && { fieldViolations: violations };
  const retry = retryAfterSeconds !== undefined && { retryDelay: `${retryAfterSeconds}s` };
  if (version.startsWith('0.')) return { code, message, data: { ...info, ...fields, ...retry } };
  const data: unknown[] = [info];
  if (fields) data.push({ '@type': BAD_REQUEST_TYPE, ...fields });
  if (retry) data.push({ '@type': RETRY_INFO_TYPE, ...retry });
  return { code, message, data };
}
