import { ProtocolError } from '@baton/a2a';
import { type ExecutionContext, Injectable } from '@nestjs/common';
import { AuthGuard, PassportStrategy } from '@nestjs/passport';
import { Strategy } from 'passport-http-bearer';
import { JwtService } from './issuers/jwt.service.js';
import { type Caller, RefusedTokenError, TokenService } from './token.service.js';

/** Three parts in base64url (RFC 7515 §7.1). No token of Baton has a dot. */
const JWT = /^[\w-]+\.[\w-]+\.[\w-]+$/;

/** Whether a bearer token has the form of a JWT. */
export const isJwt = (token: string): boolean => JWT.test(token);

/** The caller that a guard has found. Throws if the route has no guard, which is a bug. */
export function callerOf(request: object): Caller {
  const caller = (request as { user?: Caller }).user;
  if (!caller) throw new Error('callerOf: the route has no guard that finds its caller');
  return caller;
}

type HttpRequest = Parameters<Strategy<never>['authenticate']>[0];

/** Passport's `bearer`: finds the caller of the token in the `Authorization` header (RFC 6750 §2.1). */
@Injectable()
export class BearerStrategy extends PassportStrategy(Strategy, 'bearer') {
  constructor(
    private readonly tokens: TokenService,
    private readonly jwts: JwtService,
  ) {
    super({ realm: 'baton' });
  }

  /** Only the header counts: a token in a URL or a form ends up in logs. */
  override authenticate(request: HttpRequest): void {
    const onlyHeaders: Pick<HttpRequest, 'headers'> = { headers: request.headers };
    super.authenticate(onlyHeaders as HttpRequest);
  }

  /** A token of Baton, or of an issuer that a tenant trusts. Throws `unauthenticated` with the reason if it is not good. */
  async validate(secret: string): Promise<Caller> {
    if (isJwt(secret)) return this.jwts.verify(secret);
    const verification = await this.tokens.verify(secret);
    if (verification.ok) return verification.caller;
    throw new RefusedTokenError(verification.reason, verification.holder);
  }
}

/** The part of a reply that the guard needs; Fastify's reply has it. */
interface Reply {
  header(name: string, value: string): unknown;
}

/**
 * Lets a request through whose token is good; see `callerOf`. Otherwise sets `WWW-Authenticate` on the reply
 * (RFC 6750 §3), which @nestjs/passport leaves out, and throws `unauthenticated` with the reason.
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
