import { ProtocolError } from '@baton/a2a';
import { type ExecutionContext, Injectable } from '@nestjs/common';
import { AuthGuard } from '@nestjs/passport';

/** The part of a reply that the guard needs; Fastify's reply has it. */
interface Reply {
  header(name: string, value: string): unknown;
}

/**
 * Lets a request through if its token is valid; see `callerOf`. Otherwise sets `WWW-Authenticate` on the reply (RFC 6750 §3), which
 * @nestjs/passport leaves out, and throws `unauthenticated` with the reason.
 */
@Injectable()
export class BearerGuard extends AuthGuard('bearer') {
  /**
   * @param error what `validate` threw
   * @param challenge set by passport when the request has no token, not set when its header is malformed
   */
  override handleRequest<C>(
    error: Error | null,
    caller: C | false,
    challenge: unknown,
    context: ExecutionContext,
  ): C {
    if (caller) return caller;
    const reply = context.switchToHttp().getResponse<Reply>();
    const explain = (attributes: string): void =>
      void reply.header('www-authenticate', `Bearer realm="baton"${attributes}`);
    if (error instanceof ProtocolError && error.kind === 'unauthenticated') {
      explain(`, error="invalid_token", error_description="${error.message}"`);
    }
    if (error) throw error;
    const isMissing = typeof challenge === 'string';
    explain(isMissing ? '' : ', error="invalid_request"');
    throw new ProtocolError(
      'unauthenticated',
      isMissing
        ? 'a bearer token is required: send "Authorization: Bearer <token>"'
        : 'the Authorization header must be "Bearer" and one token',
    );
  }
}
