import { A2A_ERROR_DOMAIN, ERROR_INFO_TYPE } from '@a2a-js/sdk/errors';
import { ERRORS, type ErrorKind, type ErrorWire, type ProtocolError } from './errors.js';

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
