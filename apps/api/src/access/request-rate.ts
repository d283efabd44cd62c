import { ProtocolError } from '@baton/a2a';
import { LimitsService } from '@baton/identity';
import { Messaging } from '@baton/messaging';
import { Injectable } from '@nestjs/common';

/** Holds every tenant to its requests per second, over all processes. */
@Injectable()
export class RequestRate {
  constructor(
    private readonly limits: LimitsService,
    private readonly messaging: Messaging,
  ) {}

  /** Count one request. Throws `limit-exceeded`. */
  async count(tenantId: string): Promise<void> {
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
