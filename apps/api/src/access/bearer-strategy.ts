import { type Caller, isJwt, JwtService, RefusedTokenError, TokenService } from '@baton/identity';
import { Injectable } from '@nestjs/common';
import { PassportStrategy } from '@nestjs/passport';
import { Strategy } from 'passport-http-bearer';

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

  /** A token of Baton, or of an issuer that a tenant trusts. Throws `unauthenticated` with the reason if it is not valid. */
  async validate(secret: string): Promise<Caller> {
    if (isJwt(secret)) return this.jwts.verify(secret);
    const verification = await this.tokens.verify(secret);
    if (verification.ok) return verification.caller;
    throw new RefusedTokenError(verification.reason, verification.holder);
  }
}
