import { ProtocolError } from '@baton/a2a';
import { type ExecutionContext, Injectable } from '@nestjs/common';
import { AuthGuard } from '@nestjs/passport';

const MALFORMED = 'Bearer realm="baton", error="invalid_request"';

/** What of a reply the guard needs; Fastify's has it. */
interface Reply {
  header(name: string, value: string): unknown;
}

/**
 * Lets a request through whose token is good; see `callerOf`. Otherwise sets `WWW-Authenticate` on the reply
 * (RFC 6750 §3), which @nestjs/passport leaves out, and throws `unauthenticated` with the reason.
 */
@Injectable()
export class BearerGuard extends AuthGuard('bearer') {
  /** @param challenge passport's `WWW-Authenticate`; absent when the header itself is malformed */
  override handleRequest<Caller>(
    error: Error | null,
    caller: Caller | false,
    challenge: unknown,
    context: ExecutionContext,
  ): Caller {
    if (error) throw error;
    if (caller) return caller;
    const header = typeof challenge === 'string' ? challenge : MALFORMED;
    context.switchToHttp().getResponse<Reply>().header('www-authenticate', header);
    throw new ProtocolError('unauthenticated', reasonIn(header));
  }
}

function reasonIn(challenge: string): string {
  if (challenge === MALFORMED) return 'the Authorization header must be "Bearer" and one token';
  const description = /error_description="([^"]*)"/.exec(challenge)?.[1];
  return description ?? 'a bearer token is required: send "Authorization: Bearer <token>"';
}
