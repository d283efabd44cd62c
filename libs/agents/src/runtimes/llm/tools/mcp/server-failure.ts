import { SseError } from '@modelcontextprotocol/sdk/client/sse.js';
import { StreamableHTTPError } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { ErrorCode, McpError } from '@modelcontextprotocol/sdk/types.js';
import { failureReason } from '../../../../outbound/failure-reason.js';
import { NOTHING_SECRET } from '../../../../outbound/redactor.js';

const MAX_LENGTH = 300;

/**
 * What went wrong with an MCP server, for the tenant who has named it: a clause about the server.
 * @param redactor takes the secrets out that the server was sent
 */
export function serverFailure(error: unknown, redactor = NOTHING_SECRET): string {
  const status = httpStatus(error);
  if (status === 401 || status === 403) return `it does not accept the credentials (HTTP ${status})`;
  if (status !== undefined) return `it answers with HTTP ${status}`;
  const isTimeout = error instanceof McpError && hasCode(error, ErrorCode.RequestTimeout);
  if (isTimeout) return 'it gives no answer in time';
  if (isUnknown(error)) return 'the connection broke, and what became of it is not known';
  if (codesOf(error).includes('ENOENT')) return 'its command was not found';
  const said = failureReason(error) ?? causesOf(error).at(-1)?.message ?? String(error);
  return redactor.text(said).slice(0, MAX_LENGTH);
}

/** The HTTP status with which a server has refused; undefined if that was not what happened. */
export function httpStatus(error: unknown): number | undefined {
  const isHttp = error instanceof StreamableHTTPError || error instanceof SseError;
  return isHttp && error.code !== undefined && error.code > 0 ? error.code : undefined;
}

/** The connection could not be made, or not just now: worth another try. */
export function mayPass(error: unknown): boolean {
  const status = httpStatus(error);
  if (status !== undefined) return status === 429 || status >= 500;
  return codesOf(error).some((code) => code !== 'ENOENT');
}

const NOT_SENT = new Set([
  'ECONNREFUSED',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ENOTFOUND',
  'UND_ERR_CONNECT_TIMEOUT',
]);

/** The server has surely not begun the call: it can be made again whatever it does. */
export function wasNotTaken(error: unknown): boolean {
  if (httpStatus(error) === 404 || isError(error, 'Not connected')) return true;
  return codesOf(error).some((code) => NOT_SENT.has(code));
}

const BROKEN = new Set(['ECONNRESET', 'EPIPE', 'UND_ERR_SOCKET']);

/** The connection broke while the call was on its way, and nobody knows what became of it. */
export function isUnknown(error: unknown): boolean {
  if (error instanceof McpError) return hasCode(error, ErrorCode.ConnectionClosed);
  return codesOf(error).some((code) => BROKEN.has(code));
}

const hasCode = (error: McpError, code: number): boolean => error.code === code;

interface Cause {
  message: string;
  code?: unknown;
  cause?: unknown;
}

/** The error and what lies below it: fetch wraps what has happened. */
function causesOf(error: unknown): Cause[] {
  const chain: Cause[] = [];
  let cause = error;
  while (typeof cause === 'object' && cause !== null && 'message' in cause && chain.length < 10) {
    chain.push(cause as Cause);
    cause = (cause as Cause).cause;
  }
  return chain;
}

/** Codes of the system and of the HTTP client; the protocol's own are numbers. */
const codesOf = (error: unknown): string[] =>
  causesOf(error).flatMap(({ code }) => (typeof code === 'string' ? [code] : []));

const isError = (error: unknown, message: string): boolean => causesOf(error)[0]?.message === message;
