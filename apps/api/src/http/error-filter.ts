import { type ArgumentsHost, Catch, type ExceptionFilter, HttpException } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { type ErrorFormat, sendJsonError, sendPlainError } from './errors.js';
import { Failures } from './failures.js';

/** Errors about the URL or the HTTP method. They have the same form on every route. */
const PLAIN_STATUSES: ReadonlySet<number> = new Set([404, 405, 503]);

/**
 * Answers errors outside of controllers: a refused token, an unknown path, a request that Fastify refuses, a bug. The
 * form is that of the route (`ErrorFormat`), or else `{"error": {code, status, message}}`, with `fields: [{field,
 * description}]` where fields of the request are wrong.
 */
@Catch()
export class ErrorFilter implements ExceptionFilter {
  constructor(private readonly failures: Failures) {}

  catch(error: unknown, host: ArgumentsHost): void {
    const request = host.switchToHttp().getRequest<FastifyRequest>();
    const reply = host.switchToHttp().getResponse<FastifyReply>();
    if (reply.sent) return;
    if (error instanceof HttpException && PLAIN_STATUSES.has(error.getStatus())) {
      sendPlainError(reply, error.getStatus(), plainMessage(error, request));
      return;
    }
    const config = request.routeOptions.config as Partial<ErrorFormat> | undefined;
    const sendError = config?.sendError ?? sendJsonError;
    sendError(request, reply, this.failures.toProtocolError(error, request));
  }
}

function plainMessage(error: HttpException, request: FastifyRequest): string {
  if (error.getStatus() !== 404) return error.message;
  const path = request.url.split('?', 1)[0] ?? '';
  return `there is nothing at ${path.slice(0, 200)}`;
}
