import { ErrorCode, McpError } from '@modelcontextprotocol/sdk/types.js';
import { codesOf, causesOf } from './error-causes.js';
import { SPAWN_REASONS } from './explain-failure.js';
import { hasCode, McpFailure } from './mcp-failure.js';

/** Whether the SDK gave up waiting. */
export const isTimeout = (error: unknown): boolean =>
  error instanceof McpError && hasCode(error, ErrorCode.RequestTimeout);

/** Whether a retry of the connection may succeed. */
export function isTransient(error: unknown): boolean {
  if (error instanceof McpFailure) {
    const { status } = error.details;
    return error.kind === 'broken' || (status !== undefined && (status === 429 || status >= 500));
  }
  return codesOf(error).some((code) => !SPAWN_REASONS.some(([spawn]) => spawn === code));
}

const NOT_SENT = new Set([
  'ECONNREFUSED',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ENOTFOUND',
  'UND_ERR_CONNECT_TIMEOUT',
]);

/** Whether the server certainly has not started the call. Then any call can be repeated. */
export function wasNotStarted(error: unknown): boolean {
  if (error instanceof McpFailure) return error.details.status === 404 && error.details.hadSession === true;
  if (causesOf(error)[0]?.message === 'Not connected') return true;
  return codesOf(error).some((code) => NOT_SENT.has(code));
}

/** Whether the server refused a request because of its session. MCP specifies 404; many servers send 400. */
export const lostSession = (error: unknown): boolean =>
  error instanceof McpFailure &&
  error.details.hadSession === true &&
  [400, 404].includes(error.details.status ?? 0);

/** Whether the connection broke before an answer, so that the outcome is unknown. */
export const isUnknown = (error: unknown): boolean =>
  error instanceof McpFailure && (error.kind === 'broken' || error.kind === 'ended');

/** A server of the older SSE transport, or none of MCP, answers the first message of the newer one like this. */
export const isUnknownTransport = (error: unknown): boolean =>
  error instanceof McpFailure &&
  (error.kind === 'unreadable' || [400, 404, 405].includes(error.details.status ?? 0));
