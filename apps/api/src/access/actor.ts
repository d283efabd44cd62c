import type { Actor } from '@baton/database';
import { callerOf } from '@baton/identity';
import type { FastifyRequest } from 'fastify';

/** Who sends the request, for the audit log. */
export function actorOf(request: FastifyRequest): Actor {
  return { ...callerOf(request).principal, address: request.ip, requestId: request.id };
}
