import { type ErrorKind, ProtocolError } from '@baton/a2a';
import { isTransient } from '@baton/database';
import type { Logger } from '@baton/telemetry';
import { HttpException } from '@nestjs/common';
import type { FastifyRequest } from 'fastify';
import { notesOf } from './request-notes.js';

/** Kinds of errors that name a limit of the tenant. */
const LIMIT_KINDS: ReadonlySet<ErrorKind> = new Set(['limit-exceeded', 'too-large']);

const AWAY = 'The database is not available at the moment: send the request again';

/**
 * What a caller is told about an error: a ProtocolError as it is; what Nest and Fastify refuse by its HTTP
 * status; that the database is away, as this; anything else is logged with its stack, and the caller gets no
 * more than the request's id.
 */
export function failureOf(error: unknown, request: FastifyRequest, logger: Logger): ProtocolError {
  if (error instanceof ProtocolError) {
    const limit = LIMIT_KINDS.has(error.kind) ? error.detail.metadata?.limit : undefined;
    if (limit !== undefined) notesOf(request).limit = limit;
    return error;
  }
  const refused = error instanceof HttpException ? refusalOf(error) : undefined;
  if (refused) return refused;
  const { streamedAt: _, ...notes } = notesOf(request);
  const metadata = { requestId: request.id };
  if (isTransient(error)) {
    logger.warn('request failed: the database is away', { err: error, ...metadata, ...notes });
    return new ProtocolError('internal', AWAY, { metadata });
  }
  logger.error('request failed', { err: error, ...metadata, ...notes });
  return new ProtocolError('internal', 'Internal error', { metadata });
}

function refusalOf(error: HttpException): ProtocolError | undefined {
  switch (error.getStatus()) {
    case 401:
      return new ProtocolError('unauthenticated', 'a valid bearer token is required');
    case 403:
      return new ProtocolError('forbidden', error.message);
    case 413:
      return new ProtocolError('too-large', error.message);
    case 415:
      return new ProtocolError('media-type', error.message);
    default:
      return undefined;
  }
}
