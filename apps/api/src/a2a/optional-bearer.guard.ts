import { BearerGuard, type Caller } from '@baton/identity';
import { type ExecutionContext, Injectable } from '@nestjs/common';
import type { FastifyRequest } from 'fastify';
import { guestOf } from '../hosts/host.guard.js';
import { HostBindings } from '../hosts/host-bindings.js';

/**
 * No token is needed, but one that is sent must be valid. At a public host whoever has none is a guest of the
 * tenant, whose limits hold.
 */
@Injectable()
export class OptionalBearerGuard extends BearerGuard {
  constructor(private readonly bindings: HostBindings) {
    super();
  }

  override async canActivate(context: ExecutionContext): Promise<boolean> {
    const request = context.switchToHttp().getRequest<FastifyRequest & { user?: Caller }>();
    if (request.headers.authorization !== undefined) {
      await super.canActivate(context);
      return true;
    }
    const binding = await this.bindings.of(request);
    if (binding?.public) request.user = guestOf(binding);
    return true;
  }
}
