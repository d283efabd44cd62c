import type { JsonObject } from '@baton/a2a';
import { type JSONRPCMessage, JSONRPCMessageSchema } from '@modelcontextprotocol/sdk/types.js';
import { MAX_SAID, McpFailure, unreadable } from './mcp-failure.js';

export type RequestId = string | number;

/**
 * Reads the messages of a server before the SDK does, and rewrites them for it. The SDK drops an answer that is not exactly MCP, and the
 * request waits in vain. It also uses the error codes of servers for its own errors. So:
 *
 * - a result becomes `{value: <result>}`, which the SDK takes whatever it is; the result of `initialize` keeps only the members that Baton uses;
 * - an error becomes an error whose `data` is an McpFailure. Data of the server is never there, so an error of the SDK
 *   without such data is the SDK's own.
 */
export class WireAnswers {
  /** Methods of the requests that have no answer yet. */
  private readonly pending = new Map<RequestId, string>();

  /** Records a sent message. @returns the id of a request; undefined for a notification or an answer */
  sent(message: unknown): RequestId | undefined {
    const { id, method, params } = message as { id?: RequestId; method?: string; params?: JsonObject };
    if (method === 'notifications/cancelled') this.pending.delete(params?.requestId as RequestId);
    if (id === undefined || method === undefined) return undefined;
    this.pending.set(id, method);
    return id;
  }

  isPending(id: RequestId): boolean {
    return this.pending.has(id);
  }

  /**
   * The messages for the SDK.
   * @param value a message of the server, or a batch
   * @param about the request to which the server answered with this
   */
  read(value: unknown, about?: RequestId): JSONRPCMessage[] {
    if (Array.isArray(value)) return value.flatMap((each) => this.read(each, about));
    if (typeof value !== 'object' || value === null) return [];
    const { id, method, result, error } = value as JsonObject;
    if (typeof method === 'string') {
      const { data, success } = JSONRPCMessageSchema.safeParse(value);
      return success ? [data] : [];
    }
    const isError = error !== undefined && error !== null;
    const request = this.requestOf(id) ?? (isError || id === undefined || id === null ? about : undefined);
    if (request === undefined || !this.isPending(request)) return [];
    if (isError) return [this.fail(request, serverError(error) ?? unreadable(JSON.stringify(value)))];
    return [
      result === undefined
        ? this.fail(request, unreadable(JSON.stringify(value)))
        : this.succeed(request, result),
    ];
  }

  /** The answer that ends a request with a failure. */
  fail(id: RequestId, { kind, message, details }: McpFailure): JSONRPCMessage {
    this.pending.delete(id);
    return { jsonrpc: '2.0', id, error: { code: 0, message, data: { kind, message, details } } };
  }

  private succeed(id: RequestId, value: unknown): JSONRPCMessage {
    if (this.pending.get(id) !== 'initialize') {
      this.pending.delete(id);
      return { jsonrpc: '2.0', id, result: { value } };
    }
    const result = initialized(value);
    if (!result) return this.fail(id, unreadable(JSON.stringify(value)));
    this.pending.delete(id);
    return { jsonrpc: '2.0', id, result };
  }

  /** Some servers send the id as a text. */
  private requestOf(id: unknown): RequestId | undefined {
    if (typeof id !== 'string' && typeof id !== 'number') return undefined;
    return [id, Number(id)].find((each) => this.isPending(each));
  }
}

/** An error object of JSON-RPC (§5.1), of any code. */
function serverError(error: unknown): McpFailure | undefined {
  if (typeof error !== 'object' || error === null) return undefined;
  const { code, message, data } = error as JsonObject;
  if (code === undefined && message === undefined) return undefined;
  const text = typeof message === 'string' ? message : JSON.stringify(message ?? '');
  const isCode = typeof code === 'number' || typeof code === 'string';
  const named = isCode ? `the error ${String(code).slice(0, 40)}` : 'an error';
  const rpc = typeof code === 'number' ? { rpc: { code, ...(data !== undefined && { data }) } } : {};
  return new McpFailure('error', `it answers with ${named}`, { serverText: text.slice(0, MAX_SAID), ...rpc });
}

/** The used members of the answer to `initialize`. Undefined: it is not one. */
function initialized(value: unknown): JsonObject | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  const { protocolVersion, capabilities, instructions } = value as JsonObject;
  if (typeof protocolVersion !== 'string') return undefined;
  const isKnown = typeof capabilities === 'object' && capabilities !== null;
  // A server that declares nothing is asked. In PHP an empty object is written as a list.
  const hasTools = !isKnown || Boolean((capabilities as JsonObject).tools);
  return {
    protocolVersion,
    capabilities: hasTools ? { tools: {} } : {},
    serverInfo: { name: 'server', version: '' },
    ...(typeof instructions === 'string' && { instructions }),
  };
}
