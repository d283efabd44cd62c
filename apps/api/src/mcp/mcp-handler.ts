import {
  answerJson,
  decodeEnvelope,
  encodeEnvelope,
  encodeErrorEnvelope,
  EnvelopeError,
  ProtocolError,
  shortened,
} from '@baton/a2a';
import { Environment } from '@baton/config';
import { callerOf } from '@baton/identity';
import { Injectable } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { AgentFinder } from '../core/agent-finder.js';
import { CallHandler } from '../core/call-handler.js';
import { BodyReader } from '../http/body-reader.js';
import { CallerLeft } from '../http/caller-left.js';
import { setErrorHeaders } from '../http/errors.js';
import { PublicUrl } from '../http/public-url.js';
import { type HttpExchange, logContextOf } from '../http/requests.js';
import { listed, type McpCall } from './mcp-call.js';
import { encodeMcpError, McpError } from './mcp-error.js';
import { MODERN, type McpRequest, readRequest } from './mcp-request.js';
import { ServerMethods } from './server-methods.js';
import { TaskMethods } from './task-methods.js';
import { RESOURCE_TEMPLATES } from './task-resources.js';
import { ToolCalls } from './tool-calls.js';

const JSON_TYPE = 'application/json; charset=utf-8';

type Method = (call: McpCall) => Promise<unknown>;

/**
 * Maps a request of MCP to operations and back. If several things are wrong, the first of these is answered: URL and HTTP
 * method (404, 405), token (401), requests per second (429), Origin (403), media type (415), size (413), JSON and envelope
 * (400), what `readRequest` checks, the agent of the path (404), method, params, and then what `CallResolver` checks.
 */
@Injectable()
export class McpHandler {
  private readonly modern: Readonly<Record<string, Method>>;
  private readonly legacy: Readonly<Record<string, Method>>;

  constructor(
    private readonly bodies: BodyReader,
    private readonly calls: CallHandler,
    private readonly finder: AgentFinder,
    private readonly publicUrl: PublicUrl,
    private readonly environment: Environment,
    server: ServerMethods,
    tools: ToolCalls,
    tasks: TaskMethods,
  ) {
    const shared: Record<string, Method> = {
      'tools/list': (call) => server.listTools(call),
      'tools/call': (call) => tools.callTool(call),
      'resources/list': async ({ request }) => listed(request, { resources: [] }),
      'resources/templates/list': async ({ request }) =>
        listed(request, { resourceTemplates: RESOURCE_TEMPLATES }),
      'resources/read': (call) => server.readResource(call),
    };
    this.modern = {
      ...shared,
      'server/discover': async () => server.discover(),
      'tasks/get': (call) => tasks.getTask(call),
      'tasks/update': (call) => tasks.updateTask(call),
      'tasks/cancel': (call) => tasks.cancelTask(call),
      'subscriptions/listen': (call) => tasks.listen(call),
    };
    this.legacy = {
      ...shared,
      initialize: async ({ request }) => server.initialize(request),
      ping: async () => ({}),
    };
  }

  /** Answers one request. Never rejects: every failure becomes an answer, unless the caller has disconnected. */
  async handle(pathAgent: string | undefined, exchange: HttpExchange): Promise<void> {
    const { request: http, reply } = exchange;
    let id: McpRequest['id'] | undefined;
    try {
      this.assertOrigin(http);
      const envelope = decodeEnvelope(await this.bodies.text(http, 'standard', ['application/json']));
      id = envelope.id ?? undefined;
      logContextOf(http).rpcMethod = shortened(envelope.method, 64);
      if (!envelope.hasId) {
        acceptNotification(envelope.method, reply);
        return;
      }
      const request = readRequest(envelope, http.headers);
      const agent = pathAgent === undefined ? undefined : await this.finder.named(callerOf(http), pathAgent);
      const methods = request.isModern ? this.modern : this.legacy;
      const method = Object.hasOwn(methods, request.method) ? methods[request.method] : undefined;
      if (!method) throw unknownMethod(request);
      const result = await method({ request, exchange, agent });
      // A stream has answered by itself.
      if (!reply.sent) sendJson(reply, 200, encodeEnvelope(request.id, result));
    } catch (error) {
      if (reply.raw.headersSent || error instanceof CallerLeft) return;
      const known = error instanceof EnvelopeError ? (error.id ?? undefined) : id;
      this.calls.fail(error, exchange, { error: (failure) => sendMcpError(http, reply, failure, known) });
    } finally {
      this.bodies.release(http);
    }
  }

  /** Web pages of other origins must not call what only the network protects. Programs send no Origin. */
  private assertOrigin({ headers: { origin } }: FastifyRequest): void {
    if (origin === undefined) return;
    const { corsOrigins } = this.environment;
    const isKnown = corsOrigins.includes('*') || corsOrigins.includes(origin);
    if (isKnown || origin === new URL(this.publicUrl.value).origin) return;
    throw new McpError(
      'foreignOrigin',
      `Origin: ${shortened(origin, 128)} may not call: the operator can add it to CORS_ORIGINS`,
    );
  }
}

/**
 * Writes an error in the form of MCP.
 * @param id unset: it is not known. Then it is null as in JSON-RPC: the Python SDK reads no error without the member
 */
export function sendMcpError(
  request: FastifyRequest,
  reply: FastifyReply,
  failure: ProtocolError,
  id?: McpRequest['id'],
): void {
  const { http, error } = encodeMcpError(failure);
  logContextOf(request).rpcError = error.code;
  setErrorHeaders(reply, failure);
  const isWhole = failure.kind === 'parse' || failure.kind === 'invalid-request';
  sendJson(reply, isWhole ? 400 : http, encodeErrorEnvelope(id ?? null, error));
}

function sendJson(reply: FastifyReply, status: number, body: object): void {
  reply.status(status).header('content-type', JSON_TYPE).send(answerJson(body));
}

/** A notification is accepted, and nothing of it is needed: there are no sessions, and a request ends with its connection. */
function acceptNotification(method: string, reply: FastifyReply): void {
  if (!method.startsWith('notifications/')) throw new McpError('badRequest', 'id: is required in a request');
  reply.status(202).send();
}

function unknownMethod({ method, isModern }: McpRequest): ProtocolError {
  const message = `Method not found: ${shortened(method, 128)}`;
  if (isModern) return new McpError('unknownMethod', message, { version: MODERN });
  return ProtocolError.methodNotFound(method);
}
