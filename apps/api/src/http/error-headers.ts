import type { ProtocolError } from '@baton/a2a';
import type { FastifyReply } from 'fastify';

/**
 * The headers of an error answer: `WWW-Authenticate` where the token is what is wrong (RFC 6750 §3) and the
 * guard has not said more, and `Retry-After` in seconds where the same request may be sent again (RFC 9110
 * §10.2.3).
 */
export function setErrorHeaders(reply: FastifyReply, failure: ProtocolError): void {
  const challenge = challengeFor(failure);
  if (challenge && !reply.hasHeader('www-authenticate')) reply.header('www-authenticate', challenge);
  const { retryAfterSeconds } = failure.detail;
  if (retryAfterSeconds !== undefined) reply.header('retry-after', String(retryAfterSeconds));
  // The rest of the request may still come; nothing else can follow it.
  if (failure.kind === 'request-timeout') reply.header('connection', 'close');
}

/** `WWW-Authenticate` of a 401 or a 403. */
function challengeFor({ kind, detail }: ProtocolError): string | undefined {
  if (kind === 'unauthenticated') return 'Bearer realm="baton"';
  if (kind !== 'forbidden') return undefined;
  const scope = detail.metadata?.missingScope;
  return `Bearer realm="baton", error="insufficient_scope"${scope ? `, scope="${scope}"` : ''}`;
}
