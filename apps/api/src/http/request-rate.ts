import { ProtocolError } from '@baton/a2a';
import { type Caller, LimitsService } from '@baton/identity';
import { Messaging } from '@baton/messaging';
import { type CallHandler, type ExecutionContext, Injectable, type NestInterceptor } from '@nestjs/common';
import type { FastifyRequest } from 'fastify';
import type { Observable } from 'rxjs';
import { logContextOf } from './log-context.js';

/**
 * Holds every tenant to its requests per second, over all processes. It stands around every route, right after
 * the guards, so that no route is forgotten: a request that a guard has found the caller of counts for the
 * caller's tenant, before its body is read.
 */
@Injectable()
export class RequestRate implements NestInterceptor {
  constructor(
    private readonly limits: LimitsService,
    private readonly messaging: Messaging,
  ) {}

  async intercept(context: ExecutionContext, next: CallHandler): Promise<Observable<unknown>> {
    const request = context.switchToHttp().getRequest<FastifyRequest & { user?: Caller }>();
    if (request.user) {
      logContextOf(request).tenantId = request.user.tenantId;
      await this.count(request.user.tenantId);
    }
    return next.handle();
  }

  /** Throws `limit-exceeded`. */
  private async count(tenantId: string): Promise<void> {
    const { requestsPerSecond } = await this.limits.of(tenantId);
    if (requestsPerSecond === null) return;
    const { allowed, retryAfterMs } = await this.messaging.spend(
      `requests:${tenantId}`,
      requestsPerSecond,
      1,
    );
    if (allowed) return;
    throw ProtocolError.limitExceeded(
      'requestsPerSecond',
      requestsPerSecond,
      Math.max(1, Math.ceil(retryAfterMs / 1000)),
      'send fewer requests a second, or ask the operator for more',
    );
  }
}
