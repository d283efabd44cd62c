import { type ErrorKind, errorWire, type FieldViolation, httpErrorWire, ProtocolError } from '@baton/a2a';

/** Errors of MCP that A2A does not have: code and HTTP status. */
const MCP_CODES = {
  /** The headers and the body differ, or a header is missing. */
  headerMismatch: { code: -32020, http: 400 },
  /** The client has not declared a capability. */
  missingCapability: { code: -32021, http: 400 },
  unsupportedVersion: { code: -32022, http: 400 },
  /** The request as a whole is wrong. Its method was not read. */
  badRequest: { code: -32600, http: 400 },
  badMeta: { code: -32602, http: 400 },
  unknownMethod: { code: -32601, http: 404 },
  unknownTool: { code: -32602, http: 200 },
  unknownResource: { code: -32602, http: 200 },
  /** `unknownResource` in revisions before 2026-07-28. */
  resourceNotFound: { code: -32002, http: 200 },
  foreignOrigin: { code: -32600, http: 403 },
} as const;

/** Their names in the log and the metrics. */
const KINDS: Partial<Record<keyof typeof MCP_CODES, ErrorKind>> = {
  unknownMethod: 'method-not-found',
  unknownTool: 'agent-not-found',
  unknownResource: 'task-not-found',
  resourceNotFound: 'task-not-found',
  foreignOrigin: 'forbidden',
};

/** An error that only MCP has. */
export class McpError extends ProtocolError {
  readonly code: number;
  readonly http: number;

  /** @param data members of the answer besides the message */
  constructor(
    error: keyof typeof MCP_CODES,
    message: string,
    readonly data?: Record<string, unknown>,
  ) {
    super(KINDS[error] ?? 'bad-request', message);
    ({ code: this.code, http: this.http } = MCP_CODES[error]);
  }
}

/** The `error` member of an answer. */
interface ErrorMember {
  code: number;
  message: string;
  data?: Record<string, unknown>;
}

/**
 * Errors with a JSON-RPC code. MCP reserves -32000 to -32099, and asks for codes outside of JSON-RPC's range: any other error
 * has its HTTP status as the code.
 */
const CODES: Partial<Record<ErrorKind, number>> = {
  parse: -32700,
  'invalid-request': -32600,
  'bad-request': -32600,
  'method-not-found': -32601,
  'invalid-params': -32602,
  'task-not-found': -32602,
  'agent-not-found': -32602,
  internal: -32603,
};

/** Errors that are answered with HTTP 200: clients of MCP read no other body. */
const IN_BODY: ReadonlySet<ErrorKind> = new Set([
  'invalid-params',
  'task-not-found',
  'method-not-found',
  'agent-threw',
  'agent-disabled',
  'task-canceled',
  'task-not-cancelable',
  'unsupported-operation',
  'content-type-not-supported',
  'push-not-supported',
  'extension-required',
  'extended-card-not-configured',
  'version-not-supported',
]);

/** An error as MCP writes it. */
export function encodeMcpError(failure: ProtocolError): { http: number; error: ErrorMember } {
  const { message, kind } = failure;
  if (failure instanceof McpError) {
    const { http, code, data } = failure;
    return { http, error: { code, message, ...(data && { data }) } };
  }
  const { http } = httpErrorWire(kind);
  const { reason } = errorWire(kind);
  const { violations, metadata, retryAfterSeconds } = failure.detail;
  const data = {
    reason,
    ...metadata,
    ...(violations && { fields: violations satisfies FieldViolation[] }),
    ...(retryAfterSeconds !== undefined && { retryAfterSeconds }),
  };
  return { http: IN_BODY.has(kind) ? 200 : http, error: { code: CODES[kind] ?? http, message, data } };
}

/** Errors that the calling model can correct. It reads the results of tools, and no errors of the protocol. */
const MODEL_CORRECTABLE: ReadonlySet<ErrorKind> = new Set([
  'invalid-params',
  'content-type-not-supported',
  'task-not-found',
  'task-canceled',
  'task-not-cancelable',
  'unsupported-operation',
  'agent-disabled',
  'agent-threw',
  'extension-required',
]);

/** Whether an error of a tool is a result with `isError`, and not an error of the protocol. */
export const isModelCorrectable = (failure: unknown): failure is ProtocolError =>
  failure instanceof ProtocolError && !(failure instanceof McpError) && MODEL_CORRECTABLE.has(failure.kind);
