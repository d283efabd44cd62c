import { STATUS_CODES } from 'node:http';
import {
  type ErrorKind,
  type FieldViolation,
  ProtocolError,
  type RpcPath,
  errorWire,
  rpcPaths,
} from '@baton/a2a';
import { type ArgumentsHost, Catch, type ExceptionFilter, HttpException } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { RpcAnswer } from '../a2a/rpc-answer.js';
import { setErrorHeaders } from './error-headers.js';
import { Failures } from './failure.js';

/** What is wrong with the URL or the HTTP method is said in HTTP's own words. */
const PLAIN_STATUSES: ReadonlySet<number> = new Set([400, 404, 405, 414, 503]);

/** Where JSON-RPC has no HTTP status for an error of its own, and a plain endpoint has. */
const STATUS_OF: Partial<Record<ErrorKind, number>> = {
  parse: 400,
  'invalid-request': 400,
  'task-not-found': 404,
  'invalid-params': 400,
  'unsupported-operation': 400,
  'agent-disabled': 409,
  unavailable: 503,
};

/**
 * What no controller has answered: a refused token, an unknown path, a request Fastify itself refuses, a bug.
 * On a JSON-RPC path the answer is a JSON-RPC error, elsewhere `{"error": {code, status, message}}`, with
 * `fields: [{field, description}]` where fields of the request are wrong.
 */
@Catch()
export class ErrorFilter implements ExceptionFilter {
  constructor(private readonly failures: Failures) {}

  catch(error: unknown, host: ArgumentsHost): void {
    const request = host.switchToHttp().getRequest<FastifyRequest>();
    const reply = host.switchToHttp().getResponse<FastifyReply>();
    if (reply.sent) return;
    if (error instanceof HttpException && PLAIN_STATUSES.has(error.getStatus())) {
      sendError(reply, error.getStatus(), plainReason(error.getStatus()), plainMessage(error, request));
      return;
    }
    const failure = this.failures.of(error, request);
    const rpcPath = rpcPathOf(request);
    if (rpcPath) new RpcAnswer(rpcPath, request, reply).error(failure);
    else sendFailure(reply, failure);
  }
}

/**
 * The answer to a path that the router can't read, in the caller's form: JSON-RPC where it would have been spoken.
 * It has no route, so the path's beginning decides.
 */
export function refusePath(request: FastifyRequest, reply: FastifyReply, status: number): void {
  const message =
    status === 414
      ? 'a name in this path is longer than any that there is'
      : 'this path is not valid percent-encoding: write each % as %25, and other characters as UTF-8';
  reply.header('x-request-id', request.id);
  const rpcPath = request.method === 'POST' && status === 400 ? rpcPathAt(request.url) : undefined;
  if (rpcPath) new RpcAnswer(rpcPath, request, reply).error(new ProtocolError('bad-request', message));
  else sendError(reply, status, plainReason(status), message);
}

/** The JSON-RPC path that begins as this one does, before the first name in it. */
function rpcPathAt(url: string): RpcPath | undefined {
  return rpcPaths().find(
    ({ path }) => path.includes(':') && url.startsWith(path.slice(0, path.indexOf(':'))),
  );
}

/** A failure in the form of HTTP+JSON endpoints (A2A 1.0 §11.6). */
export function sendFailure(reply: FastifyReply, failure: ProtocolError): void {
  const { http, reason } = errorWire(failure.kind);
  setErrorHeaders(reply, failure);
  const status = STATUS_OF[failure.kind] ?? (http === 200 ? 500 : http);
  sendError(reply, status, reason, failure.message, failure.detail.violations);
}

function sendError(
  reply: FastifyReply,
  code: number,
  status: string,
  message: string,
  fields?: readonly FieldViolation[],
): void {
  reply
    .status(code)
    .header('content-type', 'application/json; charset=utf-8')
    .send(JSON.stringify({ error: { code, status, message, ...(fields && { fields }) } }));
}

function rpcPathOf(request: FastifyRequest): RpcPath | undefined {
  const config = request.routeOptions.config as { rpcPath?: RpcPath } | undefined;
  return config?.rpcPath;
}

const plainReason = (status: number): string =>
  (STATUS_CODES[status] ?? 'error').toUpperCase().replaceAll(/\W+/g, '_');

function plainMessage(error: HttpException, request: FastifyRequest): string {
  if (error.getStatus() !== 404) return error.message;
  const path = request.url.split('?', 1)[0] ?? '';
  return `there is nothing at ${path.slice(0, 200)}`;
}
