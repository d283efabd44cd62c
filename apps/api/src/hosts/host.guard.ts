import { ProtocolError } from '@baton/a2a';
import type { HostBinding } from '@baton/database';
import { BearerGuard, type Caller, callerOf } from '@baton/identity';
import { type ExecutionContext, Injectable } from '@nestjs/common';
import type { FastifyRequest } from 'fastify';
import { HostBindings } from './host-bindings.js';

/**
 * At the root of a host: lets a valid token in, and callers without one where the host is bound and public.
 * They call in the name of the binding's tenant. A bound host that is not public takes only tokens of its
 * tenant. A token that is sent must be valid, whatever the host.
 */
@Injectable()
export class HostGuard extends BearerGuard {
  constructor(private readonly bindings: HostBindings) {
    super();
  }

  override async canActivate(context: ExecutionContext): Promise<boolean> {
    const request = context.switchToHttp().getRequest<FastifyRequest & { user?: Caller }>();
    const binding = await this.bindings.of(request);
    if (binding?.public && request.headers.authorization === undefined) {
      request.user = guestOf(binding);
    } else {
      await super.canActivate(context);
      if (binding && !binding.public && callerOf(request).tenantId !== binding.tenantId) {
        throw new ProtocolError('unauthenticated', 'the token is not valid for this host');
      }
    }
    if (binding?.tenantId === callerOf(request).tenantId) agentsByRequest.set(request, binding.agent);
    return true;
  }
}

const agentsByRequest = new WeakMap<FastifyRequest, string>();

/** Slug of the agent that the host is bound to, if it is one of the caller's tenant. */
export const agentOfHost = (request: FastifyRequest): string | undefined => agentsByRequest.get(request);

/** Who calls without a token, in the name of the host's tenant. */
export const guestOf = ({ tenantId, host }: HostBinding): Caller => ({
  tenantId,
  tokenId: `host:${host}`,
  scopes: ['agents:call', 'tasks:read'],
});
