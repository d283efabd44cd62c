import { BearerGuard } from '@baton/identity';
import { type ExecutionContext, Injectable } from '@nestjs/common';
import type { FastifyRequest } from 'fastify';

/** No token is needed, but one that is sent must be valid. */
@Injectable()
export class OptionalBearerGuard extends BearerGuard {
  override canActivate(context: ExecutionContext): ReturnType<BearerGuard['canActivate']> {
    const request = context.switchToHttp().getRequest<FastifyRequest>();
    return request.headers.authorization === undefined || super.canActivate(context);
  }
}
