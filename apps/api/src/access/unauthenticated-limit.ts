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

/** Addresses that are counted at the same time. More addresses of an attacker evict its own first. */
const MAX_ADDRESSES = 10_000;

/** Maximum number of tokens that are remembered as valid. */
const MAX_TOKENS = 10_000;
/** A revoked token is refused at its check all the same. Here it only does not count. */
const TOKEN_MS = 3_600_000;

/** A token whose check is under way. One of the functions is called once, with the result. */
export interface TokenCheck {
  /** The token is valid. */
  accept(): Promise<void>;
  /** The token is invalid. */
  refuse(): void;
  /** It is unknown whether the token is valid. */
  forgive(): Promise<void>;
}

/**
 * Limits each address to UNAUTHENTICATED_PER_SECOND requests without a valid token, before Postgres is asked. A request counts from
 * its arrival until its token proves valid. A token that was valid within the last hour does not count, so other callers behind the
 * same address do not delay its requests. Requests with a token that is being checked wait for the result: a program that begins
 * with a thousand of them at once counts as one.
 */
@Injectable()
export class UnauthenticatedLimit {
  private readonly max: number;
  private readonly limiter: RateLimiterMemory;
  /** Bounds the memory of the limiter: other addresses have no counter. */
  private readonly addresses: LRUCache<string, true>;
  private readonly goodTokens = new LRUCache<string, true>({
    maxSize: MAX_TOKENS,
    sizeCalculation: () => 1,
    ttl: TOKEN_MS,
  });

  /** Tokens whose check is under way: whether each is valid. */
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

  /** Before a token is checked. Throws `limit-exceeded` if too many requests without a valid token came from the address. */
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

  /** Other requests with the same token wait from now on. @returns to be called once, with the result */
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
