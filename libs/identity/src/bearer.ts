import { ProtocolError } from '@baton/a2a';
import { type CanActivate, type ExecutionContext, Injectable } from '@nestjs/common';
import type { IncomingHttpHeaders } from 'node:http';
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

/** The part of a reply that the guard needs; Fastify's reply has it. */
interface Reply {
  header(name: string, value: string): unknown;
}

/** What the header says: a secret, nothing that is a bearer token (`missing`), or something malformed. */
function secretIn(authorization: string | undefined): { secret: string } | 'missing' | 'malformed' {
  if (!authorization) return 'missing';
  const [scheme = '', secret, ...more] = authorization.split(' ');
  if (secret === undefined || more.length > 0) return 'malformed';
  return scheme.toLowerCase() === 'bearer' && secret !== '' ? { secret } : 'missing';
}

/** Finds the caller of a bearer token. */
@Injectable()
export class BearerTokens {
  constructor(
    private readonly tokens: TokenService,
    private readonly jwts: JwtService,
  ) {}

  /** A token of Baton, or of an issuer that a tenant trusts. Throws `unauthenticated` with the reason if it is not good. */
  async verify(secret: string): Promise<Caller> {
    if (isJwt(secret)) return this.jwts.verify(secret);
    const verification = await this.tokens.verify(secret);
    if (verification.ok) return verification.caller;
    throw new RefusedTokenError(verification.reason, verification.holder);
  }
}

/**
 * Lets a request through whose token is good; see `callerOf`. Otherwise sets `WWW-Authenticate` on the reply (RFC 6750 §3),
 * and throws `unauthenticated` with the reason. Only the `Authorization` header counts (§2.1): a token in a URL or a form
 * ends up in logs.
 */
@Injectable()
export class BearerGuard implements CanActivate {
  constructor(private readonly bearer: BearerTokens) {}

  async canActivate(context: ExecutionContext): Promise<boolean> {
    const http = context.switchToHttp();
    const request = http.getRequest<{ headers: IncomingHttpHeaders; user?: Caller }>();
    const explain = (attributes: string): void =>
      void http.getResponse<Reply>().header('www-authenticate', `Bearer realm="baton"${attributes}`);
    const found = secretIn(request.headers.authorization);
    if (found === 'missing') {
      explain('');
      const message = 'a bearer token is required: send "Authorization: Bearer <token>"';
      throw new ProtocolError('unauthenticated', message);
    }
    if (found === 'malformed') {
      explain(', error="invalid_request"');
      const message = 'the Authorization header must be "Bearer" and one token';
      throw new ProtocolError('unauthenticated', message);
    }
    try {
      request.user = await this.bearer.verify(found.secret);
    } catch (error) {
      if (error instanceof ProtocolError && error.kind === 'unauthenticated') {
        explain(`, error="invalid_token", error_description="${error.message}"`);
      }
      throw error;
    }
    return true;
  }
}
