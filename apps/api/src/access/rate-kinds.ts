import { ProtocolError } from '@baton/a2a';

interface RateKind {
  /** How long a period is, in seconds. */
  perSeconds: number;
  /** The message of a refusal. @param max what one period allows */
  refusal: (max: number) => string;
}

const ofTenant = (limit: string, perSeconds: number, remedy: string): RateKind => ({
  perSeconds,
  refusal: (max) => `the limit ${limit} of this tenant is reached, which is ${max}: ${remedy}`,
});

const DAY_SECONDS = 86_400;
const FEWER = 'send fewer requests a second, or ask the operator for more';

/**
 * Every rate that is counted, by the name that callers read in the metadata of a refusal. The rates of tenants have their
 * values in `LIMITS` (libs/config/src/limits.ts), that of a token in its row, that of an address in the setting
 * UNAUTHENTICATED_PER_SECOND.
 */
export const RATE_KINDS = {
  /** Requests of a tenant's tokens. Those of guests count apart, against the guests' share of the same limit. */
  requestsPerSecond: ofTenant('requestsPerSecond', 1, FEWER),
  /** Requests of one guest: of an address. */
  guestRequestsPerSecond: ofTenant('guestRequestsPerSecond', 1, FEWER),
  /** Messages that one guest sends. */
  guestMessagesPerDay: ofTenant(
    'guestMessagesPerDay',
    DAY_SECONDS,
    'wait, or use a token, or ask the operator for more',
  ),
  /** Requests of one token, if it has a rate of its own. */
  tokenRequestsPerSecond: {
    perSeconds: 1,
    refusal: (max) => `this token may send ${max} requests a second: send fewer, or ask its issuer for more`,
  },
  /** Requests without a valid token from one address. Each process counts them for itself. */
  unauthenticatedPerSecond: {
    perSeconds: 1,
    refusal: (max) =>
      `your address may send ${max} requests a second without a valid token: send a valid one, or wait`,
  },
} as const satisfies Record<string, RateKind>;

/** The name of a rate. */
export type RateKindName = keyof typeof RATE_KINDS;

/**
 * The refusal of a request over a rate: -32029, with HTTP 429.
 * @param max what one period allows
 * @param retryAfterMs when there is room again, in milliseconds
 */
export function rateExceeded(limit: RateKindName, max: number, retryAfterMs: number): ProtocolError {
  const retryAfterSeconds = Math.max(1, Math.ceil(retryAfterMs / 1000));
  return new ProtocolError('limit-exceeded', RATE_KINDS[limit].refusal(max), {
    metadata: { limit, max: String(max), retryAfterSeconds: String(retryAfterSeconds) },
    retryAfterSeconds,
  });
}
