import {
  answerJson,
  type ErrorKind,
  errorWire,
  type FieldViolation,
  httpErrorWire,
  ProtocolError,
} from '@baton/a2a';
import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify';
import { STATUS_CODES } from 'node:http';

/** Sends an error in the form of one protocol. */
export type SendError = (request: FastifyRequest, reply: FastifyReply, failure: ProtocolError) => void;

/** The config of a Fastify route whose errors are not in the form of HTTP+JSON. */
export interface ErrorFormat {
  sendError: SendError;
}

const JSON_TYPE = 'application/json; charset=utf-8';

/** Where an endpoint of Baton's own has another status than A2A over HTTP+JSON. */
const STATUS_OF: Partial<Record<ErrorKind, number>> = { 'agent-disabled': 409 };

/**
 * Answers a request whose path the router cannot read, so that it has no route.
 * @param sendError writes errors at the paths that begin as this one
 */
export function refusePath(
  request: FastifyRequest,
  reply: FastifyReply,
  { code }: FastifyError,
  sendError: SendError | undefined,
): void {
  const failure =
    code === 'FST_ERR_MAX_PARAM_LENGTH'
      ? new ProtocolError('uri-too-long', 'a name in this path is too long')
      : new ProtocolError(
          'bad-request',
          'this path is not valid percent-encoding: write each % as %25, and other characters as UTF-8',
        );
  reply.header('x-request-id', request.id);
  if (sendError) sendError(request, reply, failure);
  else sendPlainError(reply, errorWire(failure.kind).http, failure.message);
}

/** Sends an error in the form of Baton's own endpoints. */
export function sendJsonError(_request: FastifyRequest, reply: FastifyReply, failure: ProtocolError): void {
  const { reason } = errorWire(failure.kind);
  setErrorHeaders(reply, failure);
  const status = STATUS_OF[failure.kind] ?? httpErrorWire(failure.kind).http;
  sendJson(reply, status, reason, failure.message, failure.detail.violations);
}

/** Sends an error in HTTP's own words. */
export function sendPlainError(reply: FastifyReply, status: number, message: string): void {
  reply.status(status).header('content-type', JSON_TYPE).send(errorText(status, message));
}

/** The body of an error in HTTP's own words. */
export function errorText(code: number, message: string): string {
  const status = (STATUS_CODES[code] ?? 'error').toUpperCase().replaceAll(/\W+/g, '_');
  return answerJson({ error: { code, status, message } });
}

function sendJson(
  reply: FastifyReply,
  code: number,
  status: string,
  message: string,
  fields?: readonly FieldViolation[],
): void {
  reply
    .status(code)
    .header('content-type', JSON_TYPE)
    .send(answerJson({ error: { code, status, message, ...(fields && { fields }) } }));
}

/**
 * Sets the headers of an error answer: `WWW-Authenticate` where the token is wrong and the guard has not set it
 * (RFC 6750 §3), and `Retry-After` in seconds where the same request may be sent again (RFC 9110 §10.2.3).
 */
export function setErrorHeaders(reply: FastifyReply, failure: ProtocolError): void {
  const challenge = challengeFor(failure);
  if (challenge && !reply.hasHeader('www-authenticate')) reply.header('www-authenticate', challenge);
  const { retryAfterSeconds } = failure.detail;
  if (retryAfterSeconds !== undefined) reply.header('retry-after', String(retryAfterSeconds));
  // The rest of the request may still arrive, so no other request can follow on this connection.
  if (failure.kind === 'request-timeout') reply.header('connection', 'close');
}

/** `WWW-Authenticate` of a 401 or a 403. */
function challengeFor({ kind, detail }: ProtocolError): string | undefined {
  if (kind === 'unauthenticated') return 'Bearer realm="baton"';
  if (kind !== 'forbidden') return undefined;
  const scope = detail.metadata?.missingScope;
  return `Bearer realm="baton", error="insufficient_scope"${scope ? `, scope="${scope}"` : ''}`;
}
