import { ProtocolError } from '@baton/a2a';
import { guestLimits, type LimitName } from '@baton/config';
import { type Caller, LimitsService } from '@baton/identity';
import { Messaging } from '@baton/messaging';
import { Injectable } from '@nestjs/common';

/** Who is counted. */
interface RatedCaller extends Pick<Caller, 'tenantId' | 'principal' | 'requestsPerSecond'> {
  /** Set for guests. */
  readonly guestBudget?: string;
}

const DAY_SECONDS = 86_400;

/**
 * Holds the callers of a tenant to their rates, over all processes. Guests have a budget of their own, each address and all
 * together, so that they do not use up that of the tenant's tokens.
 */
@Injectable()
export class RequestRates {
  constructor(
    private readonly limits: LimitsService,
    private readonly messaging: Messaging,
  ) {}

  /** Counts a request of any kind. Throws `limit-exceeded`. */
  async countRequest(caller: RatedCaller): Promise<void> {
    const { tenantId, guestBudget } = caller;
    const limits = await this.limits.of(tenantId);
    if (guestBudget === undefined) {
      await this.countForToken(caller);
      await this.spend('requestsPerSecond', limits.requestsPerSecond, `requests:${tenantId}`, 1);
      return;
    }
    const { requestsPerSecond, guestRequestsPerSecond } = guestLimits(limits);
    await this.spend('guestRequestsPerSecond', guestRequestsPerSecond, `requests:${guestBudget}`, 1);
    await this.spend('requestsPerSecond', requestsPerSecond, `requests:guests:${tenantId}`, 1);
  }

  /** Counts a message that is about to be sent. Throws `limit-exceeded`. */
  async countMessage({ tenantId, guestBudget }: RatedCaller): Promise<void> {
    if (guestBudget === undefined) return;
    const { guestMessagesPerDay } = await this.limits.of(tenantId);
    await this.spend('guestMessagesPerDay', guestMessagesPerDay, `messages:${guestBudget}`, DAY_SECONDS);
  }

  /** The token's own rate. What it refuses does not count for the tenant. */
  private async countForToken({ requestsPerSecond: max, principal }: RatedCaller): Promise<void> {
    if (max === undefined) return;
    const { allowed, retryAfterMs } = await this.messaging.spend(`requests:${principal.key}`, max, 1);
    if (allowed) return;
    const retryAfterSeconds = Math.max(1, Math.ceil(retryAfterMs / 1000));
    throw new ProtocolError(
      'limit-exceeded',
      `this token may send ${String(max)} requests a second: send fewer, or ask whoever gave it for more`,
      {
        metadata: {
          limit: 'tokenRequestsPerSecond',
          max: String(max),
          retryAfterSeconds: String(retryAfterSeconds),
        },
        retryAfterSeconds,
      },
    );
  }

  private async spend(limit: LimitName, max: number | null, key: string, seconds: number): Promise<void> {
    if (max === null) return;
    const { allowed, retryAfterMs } = await this.messaging.spend(key, max, seconds);
    if (allowed) return;
    const remedy = seconds === 1 ? 'send fewer requests a second' : 'wait, or use a token';
    const retryAfterSeconds = Math.max(1, Math.ceil(retryAfterMs / 1000));
    throw ProtocolError.limitExceeded(
      limit,
      max,
      retryAfterSeconds,
      `${remedy}, or ask the operator for more`,
    );
  }
}
