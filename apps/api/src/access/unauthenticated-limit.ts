import { Environment } from '@baton/config';
import { Injectable } from '@nestjs/common';
import { LRUCache } from 'lru-cache';
import { hash } from 'node:crypto';
import { RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible';
import type { CallRequest } from '../http/requests.js';
import { networkOf } from '../http/network-of.js';
import { rateExceeded } from './rate-kinds.js';

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
      if (error instanceof RateLimiterRes)
        throw rateExceeded('unauthenticatedPerSecond', this.max, error.msBeforeNext);
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

const digest = (authorization: string): string => hash('sha256', authorization, 'base64');
