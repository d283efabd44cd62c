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

/** A token that is looked at. One of these is called once, and says what came of it. */
export interface TokenCheck {
  /** The token is good. */
  accept(): Promise<void>;
  /** The token is no longer good, or never was. */
  refuse(): void;
  /** It is unknown whether the token is good. */
  forgive(): Promise<void>;
}

/**
 * Holds each address to UNAUTHENTICATED_PER_SECOND requests without a good token, before anything is asked of Postgres. A
 * request counts when it comes in, and no longer once its token has turned out to be good. A token that was good within
 * the last hour does not count at all, so nobody with one is held up by others behind the same address. Requests with a token that is being
 * looked at wait for what comes of it: a program that begins with a thousand of them at once counts as one.
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

  /** What comes of the tokens that are being looked at: whether they are good. */
  private readonly checking = new Map<string, Promise<boolean>>();

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

  /** Counts a request whose token is not checked. Throws `limit-exceeded` if too many such requests came from its address. */
  admit(request: CallRequest): Promise<void> {
    return this.count(networkOf(request.ip));
  }

  /** Before a token is looked at. Throws `limit-exceeded` if too many requests without a good one came from the address. */
  async begin({ ip, headers: { authorization } }: CallRequest): Promise<TokenCheck> {
    const token = authorization === undefined ? undefined : digest(authorization);
    if (this.max === 0 || (token !== undefined && (await this.isGood(token)))) return this.checkOf(token);
    const address = networkOf(ip);
    const end = token === undefined || this.checking.has(token) ? () => undefined : this.open(token);
    try {
      await this.count(address);
    } catch (error) {
      end(false);
      throw error;
    }
    return this.checkOf(token, { address, end });
  }

  /** Others with the same token wait from now on. @returns called once with what came of it */
  private open(token: string): (isGood: boolean) => void {
    let resolve: (isGood: boolean) => void = () => undefined;
    this.checking.set(token, new Promise((settle) => (resolve = settle)));
    return (isGood) => {
      this.checking.delete(token);
      resolve(isGood);
    };
  }

  /** @param counted the address for which the request counts. Unset: it does not count */
  private checkOf(
    token: string | undefined,
    counted?: { address: string; end: (isGood: boolean) => void },
  ): TokenCheck {
    const giveBack = async (isGood: boolean): Promise<void> => {
      counted?.end(isGood);
      if (counted) await this.limiter.reward(counted.address);
    };
    return {
      accept: () => {
        if (counted && token !== undefined) this.goodTokens.set(token, true);
        return giveBack(true);
      },
      refuse: () => {
        if (token !== undefined) this.goodTokens.delete(token);
        counted?.end(false);
      },
      forgive: () => giveBack(false),
    };
  }

  private async isGood(token: string): Promise<boolean> {
    return this.goodTokens.has(token) || (await this.checking.get(token)) === true;
  }

  private async count(address: string): Promise<void> {
    if (this.max === 0) return;
    this.addresses.set(address, true);
    try {
      await this.limiter.consume(address);
    } catch (error) {
      if (error instanceof RateLimiterRes)
        throw rateExceeded('unauthenticatedPerSecond', this.max, error.msBeforeNext);
      throw error;
    }
  }
}

const digest = (authorization: string): string => hash('sha256', authorization, 'base64');
