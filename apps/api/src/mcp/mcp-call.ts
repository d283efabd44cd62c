import type { Agent } from '@baton/a2a';
import type { HttpExchange } from '../http/requests.js';
import type { McpRequest } from './mcp-request.js';
import type { CallToolResult } from './tool-result.js';

/** How long a client may keep a list, in ms: an agent that is new, or gone, is seen half a minute later. */
export const LIST_TTL_MS = 30_000;

/** A request, where it goes and who has sent it. */
export interface McpCall {
  readonly request: McpRequest;
  readonly exchange: HttpExchange;
  /** The agent that the path names. */
  readonly agent: Agent | undefined;
}

/** A list, or one of its items, in the form of the client's revision. @param ttlMs how long the client may keep it */
export const listed = ({ isModern }: McpRequest, result: object, ttlMs = LIST_TTL_MS): object => ({
  ...(isModern && { resultType: 'complete', ttlMs, cacheScope: 'private' }),
  ...result,
});

/** A result of a tool as the client's revision has it. */
export const complete = (
  { isModern }: McpRequest,
  result: Omit<CallToolResult, '_meta' | 'isError'> & { isError?: boolean | undefined },
): object => ({ ...(isModern && { resultType: 'complete' }), ...result });
