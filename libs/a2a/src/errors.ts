import { A2A_ERROR_CODE } from '@a2a-js/sdk/errors';

/** The wire form of one kind of error: JSON-RPC code, HTTP status and `ErrorInfo.reason`. */
export interface ErrorWire {
  code: number;
  http: number;
  reason: string;
}

/** Every error a caller can get, by our name for it, as the specification writes it (A2A 1.0 §3.3.2, §5.4). */
export const ERRORS = {
  parse: { code: A2A_ERROR_CODE.PARSE_ERROR, http: 200, reason: 'PARSE_ERROR' },
  'invalid-request': { code: A2A_ERROR_CODE.INVALID_REQUEST, http: 200, reason: 'INVALID_REQUEST' },
  'method-not-found': { code: A2A_ERROR_CODE.METHOD_NOT_FOUND, http: 200, reason: 'METHOD_NOT_FOUND' },
  'invalid-params': { code: A2A_ERROR_CODE.INVALID_PARAMS, http: 200, reason: 'INVALID_PARAMS' },
  internal: { code: A2A_ERROR_CODE.INTERNAL_ERROR, http: 200, reason: 'INTERNAL_ERROR' },
  /** Something that the server needs is away for the moment; nothing is wrong with the request. */
  unavailable: { code: A2A_ERROR_CODE.INTERNAL_ERROR, http: 200, reason: 'UNAVAILABLE' },
  'task-not-found': { code: A2A_ERROR_CODE.TASK_NOT_FOUND, http: 200, reason: 'TASK_NOT_FOUND' },
  'agent-not-found': { code: A2A_ERROR_CODE.TASK_NOT_FOUND, http: 404, reason: 'AGENT_NOT_FOUND' },
  'task-not-cancelable': {
    code: A2A_ERROR_CODE.TASK_NOT_CANCELABLE,
    http: 200,
    reason: 'TASK_NOT_CANCELABLE',
  },
  /** A message for a task that was canceled; some clients distinguish it from other ends. */
  'task-canceled': { code: A2A_ERROR_CODE.UNSUPPORTED_OPERATION, http: 200, reason: 'UNSUPPORTED_OPERATION' },
  'push-not-supported': {
    code: A2A_ERROR_CODE.PUSH_NOTIFICATION_NOT_SUPPORTED,
    http: 200,
    reason: 'PUSH_NOTIFICATION_NOT_SUPPORTED',
  },
  'unsupported-operation': {
    code: A2A_ERROR_CODE.UNSUPPORTED_OPERATION,
    http: 200,
    reason: 'UNSUPPORTED_OPERATION',
  },
  'content-type-not-supported': {
    code: A2A_ERROR_CODE.CONTENT_TYPE_NOT_SUPPORTED,
    http: 200,
    reason: 'CONTENT_TYPE_NOT_SUPPORTED',
  },
  'agent-threw': { code: A2A_ERROR_CODE.INVALID_AGENT_RESPONSE, http: 200, reason: 'INVALID_AGENT_RESPONSE' },
  'extended-card-not-configured': {
    code: A2A_ERROR_CODE.EXTENDED_CARD_NOT_CONFIGURED,
    http: 200,
    reason: 'EXTENDED_AGENT_CARD_NOT_CONFIGURED',
  },
  'extension-required': {
    code: A2A_ERROR_CODE.EXTENSION_SUPPORT_REQUIRED,
    http: 200,
    reason: 'EXTENSION_SUPPORT_REQUIRED',
  },
  'version-not-supported': {
    code: A2A_ERROR_CODE.VERSION_NOT_SUPPORTED,
    http: 200,
    reason: 'VERSION_NOT_SUPPORTED',
  },
  /** The agent exists and takes no messages at the moment. */
  'agent-disabled': { code: A2A_ERROR_CODE.UNSUPPORTED_OPERATION, http: 200, reason: 'AGENT_DISABLED' },
  /** The HTTP request itself is malformed, for profiles that report this by the status. */
  'bad-request': { code: A2A_ERROR_CODE.INVALID_REQUEST, http: 400, reason: 'INVALID_REQUEST' },
  unauthenticated: { code: A2A_ERROR_CODE.INVALID_REQUEST, http: 401, reason: 'UNAUTHENTICATED' },
  forbidden: { code: A2A_ERROR_CODE.INVALID_REQUEST, http: 403, reason: 'PERMISSION_DENIED' },
  /** The operator has suspended the tenant. No token helps. */
  'tenant-suspended': { code: A2A_ERROR_CODE.INVALID_REQUEST, http: 403, reason: 'TENANT_SUSPENDED' },
  'not-found': { code: A2A_ERROR_CODE.INVALID_REQUEST, http: 404, reason: 'NOT_FOUND' },
  /** The request conflicts with the present state. */
  conflict: { code: A2A_ERROR_CODE.INVALID_REQUEST, http: 409, reason: 'CONFLICT' },
  /** The resource has changed since the caller read it. */
  'precondition-failed': { code: A2A_ERROR_CODE.INVALID_REQUEST, http: 412, reason: 'PRECONDITION_FAILED' },
  /** A secret would be sent to a place that may not receive it. */
  'secret-refused': { code: A2A_ERROR_CODE.INVALID_PARAMS, http: 422, reason: 'SECRET_REFUSED' },
  /** An agent would call what the operator has closed to its tenant. */
  'egress-refused': { code: A2A_ERROR_CODE.INVALID_PARAMS, http: 422, reason: 'EGRESS_REFUSED' },
  /** A feature that the operator has not set up. */
  'not-configured': { code: A2A_ERROR_CODE.UNSUPPORTED_OPERATION, http: 501, reason: 'NOT_CONFIGURED' },
  'request-timeout': { code: A2A_ERROR_CODE.INVALID_REQUEST, http: 408, reason: 'REQUEST_TIMEOUT' },
  'uri-too-long': { code: A2A_ERROR_CODE.INVALID_REQUEST, http: 414, reason: 'URI_TOO_LONG' },
  'too-large': { code: A2A_ERROR_CODE.INVALID_REQUEST, http: 413, reason: 'REQUEST_TOO_LARGE' },
  /** The process has no memory for the body at the moment. The same request may be sent again. */
  overloaded: { code: A2A_ERROR_CODE.INTERNAL_ERROR, http: 503, reason: 'OVERLOADED' },
  'media-type': {
    code: A2A_ERROR_CODE.CONTENT_TYPE_NOT_SUPPORTED,
    http: 415,
    reason: 'UNSUPPORTED_MEDIA_TYPE',
  },
  /** Over a limit of the tenant; a code of our own in the range that JSON-RPC 2.0 §5.1 leaves to servers. */
  'limit-exceeded': { code: -32029, http: 429, reason: 'LIMIT_EXCEEDED' },
} satisfies Record<string, ErrorWire>;

export type ErrorKind = keyof typeof ERRORS;
