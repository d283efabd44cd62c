import { guestLimits } from '@baton/config';
import { type Caller, LimitsService } from '@baton/identity';
import { Messaging } from '@baton/messaging';
import { Injectable } from '@nestjs/common';
import { RATE_KINDS, rateExceeded, type RateKindName } from './rate-kinds.js';

/** Who is counted. */
interface RatedCaller extends Pick<Caller, 'tenantId' | 'principal' | 'requestsPerSecond'> {
  /** Set for guests. */
  readonly guestBudget?: string;
}

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
    const limits = await this.limits.get(tenantId);
    if (guestBudget === undefined) {
      await this.countForToken(caller);
      await this.spend('requestsPerSecond', limits.requestsPerSecond, `requests:${tenantId}`);
      return;
    }
    const { requestsPerSecond, guestRequestsPerSecond } = guestLimits(limits);
    await this.spend('guestRequestsPerSecond', guestRequestsPerSecond, `requests:${guestBudget}`);
    await this.spend('requestsPerSecond', requestsPerSecond, `requests:guests:${tenantId}`);
  }

  /** Counts a message that is about to be sent. Throws `limit-exceeded`. */
  async countMessage({ tenantId, guestBudget }: RatedCaller): Promise<void> {
    if (guestBudget === undefined) return;
    const { guestMessagesPerDay } = await this.limits.get(tenantId);
    await this.spend('guestMessagesPerDay', guestMessagesPerDay, `messages:${guestBudget}`);
  }

  /** The token's own rate. Refused requests do not count for the tenant. */
  private async countForToken({ requestsPerSecond: max, principal }: RatedCaller): Promise<void> {
    await this.spend('tokenRequestsPerSecond', max ?? null, `requests:${principal.key}`);
  }

  /** @param max null: any number. @param key what is counted together */
  private async spend(kind: RateKindName, max: number | null, key: string): Promise<void> {
    if (max === null) return;
    const { allowed, retryAfterMs } = await this.messaging.spend(key, max, RATE_KINDS[kind].perSeconds);
    if (!allowed) throw rateExceeded(kind, max, retryAfterMs);
  }
}
