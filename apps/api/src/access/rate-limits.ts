import { ProtocolError } from '@baton/a2a';
import { Environment, guestLimits, type LimitName } from '@baton/config';
import { type Caller, LimitsService } from '@baton/identity';
import { Messaging } from '@baton/messaging';
import { Injectable } from '@nestjs/common';
import { LRUCache } from 'lru-cache';
import { hash } from 'node:crypto';
import { RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible';
import type { CallRequest } from '../http/requests.js';
import { networkOf } from '../http/network-of.js';

/** The window in which requests are counted, in seconds. It lets a burst through. */
const WINDOW_SECONDS = 10;
/** Addresses that are counted at the same time. An attacker with more of them pushes out its own first. */
const MAX_ADDRESSES = 10_000;
/** Tokens that are known to have been good. */
const MAX_TOKENS = 10_000;
const TOKEN_MS = 3_600_000;

/** Whether a request was counted when it came in. */
export type Admission = 'counted' | 'not-counted';

/**
 * Holds each address to UNAUTHENTICATED_PER_SECOND requests without a good token, before anything is asked of Postgres. A
 * request counts when it comes in, and no longer once its token has turned out to be good. A token that was good within
 * the last hour does not count at all, so nobody with one is held up by others behind the same address.
 */
@Injectable()
export class UnauthenticatedLimit {
  private readonly max: number;
  private readonly limiter: RateLimiterMemory;
  /** Bounds the memory of the limiter: what is not in here has no counter. */
  private readonly addresses: LRUCache<string, true>;
  private readonly goodTokens = new LRUCache<string, true>({
    maxSize: MAX_TOKENS,
    sizeCalculation: () => 1,
    ttl: TOKEN_MS,
  });

  constructor({ unauthenticatedPerSecond: max }: Environment) {
    this.max = max;
    const limiter = new RateLimiterMemory({ points: max * WINDOW_SECONDS, duration: WINDOW_SECONDS });
    this.limiter = limiter;
    this.addresses = new LRUCache({
      maxSize: MAX_ADDRESSES,
      sizeCalculation: () => 1,
      dispose: (_, address, reason) => {
        if (reason === 'evict') void limiter.delete(address);
      },
    });
  }

  /** Throws `limit-exceeded` if too many requests without a good token came from the address. */
  async admit(request: CallRequest): Promise<Admission> {
    const { authorization } = request.headers;
    if (this.max === 0 || (authorization !== undefined && this.goodTokens.has(digest(authorization)))) {
      return 'not-counted';
    }
    const address = networkOf(request.ip);
    this.addresses.set(address, true);
    try {
      await this.limiter.consume(address);
    } catch (error) {
      if (error instanceof RateLimiterRes) throw tooMany(this.max, error.msBeforeNext);
      throw error;
    }
    return 'counted';
  }

  /** The token of the request is no longer good, or never was. */
  refuse({ headers: { authorization } }: CallRequest): void {
    if (authorization !== undefined) this.goodTokens.delete(digest(authorization));
  }

  /** Nobody could tell whether the token is good, or the caller needs none. */
  async forgive(request: CallRequest, admission: Admission): Promise<void> {
    if (admission === 'counted') await this.limiter.reward(networkOf(request.ip));
  }

  /** The token of the request is good. */
  async accept(request: CallRequest, admission: Admission): Promise<void> {
    const { authorization } = request.headers;
    if (admission === 'counted' && authorization !== undefined) {
      this.goodTokens.set(digest(authorization), true);
    }
    await this.forgive(request, admission);
  }
}

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

const digest = (authorization: string): string => hash('sha256', authorization, 'base64');

function tooMany(max: number, retryAfterMs: number): ProtocolError {
  const retryAfterSeconds = Math.max(1, Math.ceil(retryAfterMs / 1000));
  return new ProtocolError(
    'limit-exceeded',
    `your address may send ${String(max)} requests a second without a valid token: send a valid one, or wait`,
    {
      metadata: {
        limit: 'unauthenticatedPerSecond',
        max: String(max),
        retryAfterSeconds: String(retryAfterSeconds),
      },
      retryAfterSeconds,
    },
  );
}
