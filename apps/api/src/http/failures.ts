import { type ErrorKind, ProtocolError } from '@baton/a2a';
import { Database, isTransient } from '@baton/database';
import { Messaging, MessagingUnavailableError } from '@baton/messaging';
import { Logger, OutageLog } from '@baton/telemetry';
import { HttpException, Injectable } from '@nestjs/common';
import { type CallRequest, logContextOf } from './requests.js';

/** Kinds of errors that name a limit of the tenant. */
const LIMIT_KINDS: ReadonlySet<ErrorKind> = new Set(['limit-exceeded', 'too-large']);

/** `Retry-After` while a service is away: most outages last a few seconds. */
const RETRY_AFTER_SECONDS = 2;

/** Converts any thrown value into an error for the caller, and logs the details that the caller must not see. */
@Injectable()
export class Failures {
  private readonly outages: OutageLog;

  constructor(
    private readonly database: Database,
    private readonly messaging: Messaging,
    private readonly logger: Logger,
  ) {
    this.outages = new OutageLog(logger);
  }

  /**
   * A ProtocolError stays as it is. An HttpException of Nest or Fastify is translated by its status. While Postgres or
   * the queue is away, the answer is `unavailable`, and the log gets one line for the outage. Anything else is a bug: it is logged
   * with its stack, and the caller gets only the id of the request.
   */
  toProtocolError(error: unknown, request: CallRequest): ProtocolError {
    if (error instanceof ProtocolError) {
      const limit = LIMIT_KINDS.has(error.kind) ? error.detail.metadata?.limit : undefined;
      if (limit !== undefined) logContextOf(request).limit = limit;
      return error;
    }
    const refused = error instanceof HttpException ? refusalOf(error) : undefined;
    if (refused) return refused;
    const requestId = request.id;
    if (isTransient(error)) {
      this.outages.requestFailed('Postgres', error, () => this.database.ping());
      return unavailable('The database', requestId);
    }
    if (error instanceof MessagingUnavailableError) {
      this.outages.requestFailed('The queue', error, () => this.messaging.ping());
      return unavailable('The queue', requestId);
    }
    const { streamedAt: _, ...context } = logContextOf(request);
    this.logger.error('request failed', { err: error, requestId, ...context });
    return new ProtocolError('internal', 'Internal error', { metadata: { requestId } });
  }
}

function unavailable(what: string, requestId: string): ProtocolError {
  const message = `${what} is not available at the moment: send the request again`;
  return ProtocolError.unavailable(message, RETRY_AFTER_SECONDS, { requestId });
}

function refusalOf(error: HttpException): ProtocolError | undefined {
  switch (error.getStatus()) {
    case 400:
      return new ProtocolError('bad-request', error.message);
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
