import { A2A_ERROR_DOMAIN, ERROR_INFO_TYPE } from '@a2a-js/sdk/errors';
import { ERRORS, type ErrorKind, type ErrorWire, type ProtocolError } from './errors.js';

const BAD_REQUEST_TYPE = 'type.googleapis.com/google.rpc.BadRequest';

/** What one profile writes differently from the specification, by error kind. */
export type ErrorOverrides = Partial<Record<ErrorKind, Partial<ErrorWire>>>;

/** The `error` member of a JSON-RPC answer. */
export interface RpcError {
  code: number;
  message: string;
  data?: unknown;
}

/** The wire form of an error kind: the specification's, with what the profile writes differently. */
export const errorWire = (kind: ErrorKind, overrides: ErrorOverrides = {}): ErrorWire => ({
  ...ERRORS[kind],
  ...overrides[kind],
});

/**
 * The `error` member of a JSON-RPC answer. `data` holds `google.rpc.ErrorInfo` and, where fields are wrong,
 * `google.rpc.BadRequest` (A2A 1.0 §9.5). Version `0.3` gets one object instead of the list: clients of that
 * generation read `data` as a map and some fail on a list.
 */
export function encodeRpcError(
  error: ProtocolError,
  overrides: ErrorOverrides = {},
  version = '1.0',
): RpcError {
  const { code, reason } = errorWire(error.kind, overrides);
  const { metadata, violations } = error.detail;
  const info = {
    '@type': ERROR_INFO_TYPE,
    reason,
    domain: A2A_ERROR_DOMAIN,
    ...(metadata && { metadata }),
  };
  const fields = violations && { fieldViolations: violations };
  if (version.startsWith('0.')) return { code, message: error.message, data: { ...info, ...fields } };
  const data = fields ? [info, { '@type': BAD_REQUEST_TYPE, ...fields }] : [info];
  return { code, message: error.message, data };
}
