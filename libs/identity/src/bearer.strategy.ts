import { Injectable } from '@nestjs/common';
import { PassportStrategy } from '@nestjs/passport';
import { Strategy } from 'passport-http-bearer';
import type { Caller } from './caller.js';
import { type RefusedToken, TokenService } from './token.service.js';

const REASONS: Record<RefusedToken, string> = {
  unknown: 'the token is not known',
  expired: 'the token has expired',
  revoked: 'the token was revoked',
};

type HttpRequest = Parameters<Strategy<never>['authenticate']>[0];

/** Passport's `bearer`: finds the caller of the token in the `Authorization` header (RFC 6750 §2.1). */
@Injectable()
export class BearerStrategy extends PassportStrategy(Strategy, 'bearer') {
  constructor(private readonly tokens: TokenService) {
    super({ realm: 'baton' });
  }

  /** Only the header counts: a token in a URL or a form ends up in logs. */
  override authenticate(request: HttpRequest): void {
    const onlyHeaders: Pick<HttpRequest, 'headers'> = { headers: request.headers };
    super.authenticate(onlyHeaders as HttpRequest);
  }

  /** Passport passes the elements of an array on: no user, and why. */
  async validate(secret: string): Promise<Caller | [false, { message: string }]> {
    const verification = await this.tokens.verify(secret);
    return verification.ok ? verification.caller : [false, { message: REASONS[verification.reason] }];
  }
}
