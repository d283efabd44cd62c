import { type ProtocolError, tokenPrincipal } from '@baton/a2a';
import { DEFAULT_LIMITS, type TenantLimits } from '@baton/config';
import type { LimitsService } from '@baton/identity';
import type { Messaging } from '@baton/messaging';
import { RequestRates } from './request-rates.js';

const TENANT = 'tenant-1';
const token = (id: string, requestsPerSecond?: number) => ({
  tenantId: TENANT,
  principal: tokenPrincipal(id),
  ...(requestsPerSecond !== undefined && { requestsPerSecond }),
});
const guest = (address: string) => ({
  tenantId: TENANT,
  principal: { kind: 'guest' as const, key: `guest:open.example:${address}` },
  guestBudget: address,
});

/** Rates within one window, with these limits of the tenant. */
function ratesWith(limits: Partial<TenantLimits>): RequestRates {
  const counts = new Map<string, number>();
  const messaging: Pick<Messaging, 'spend'> = {
    spend: async (key, limit) => {
      const count = (counts.get(key) ?? 0) + 1;
      counts.set(key, count);
      return { allowed: count <= limit, retryAfterMs: 500 };
    },
  };
  const service: Pick<LimitsService, 'get'> = { get: async () => ({ ...DEFAULT_LIMITS, ...limits }) };
  return new RequestRates(service as LimitsService, messaging as Messaging);
}

/** The limit that each call meets in turn. Undefined: it is let in. */
async function refusals(calls: (() => Promise<void>)[]): Promise<unknown[]> {
  const limits: unknown[] = [];
  for (const call of calls) {
    limits.push(await call().catch((error: unknown) => (error as ProtocolError).detail.metadata?.limit));
  }
  return limits;
}

describe('the rate of a tenant', () => {
  it('is that of all its tokens together', async () => {
    const rates = ratesWith({ requestsPerSecond: 2 });
    const asked = ['one', 'two', 'three'].map((id) => () => rates.countRequest(token(id)));
    expect(await refusals(asked)).toEqual([undefined, undefined, 'requestsPerSecond']);
  });

  it('is not used up by guests, who share a part of it', async () => {
    const rates = ratesWith({ requestsPerSecond: 4, guestShare: 50, guestRequestsPerSecond: 10 });
    const guests = ['a', 'b', 'c'].map((address) => () => rates.countRequest(guest(address)));
    expect(await refusals(guests)).toEqual([undefined, undefined, 'requestsPerSecond']);
    const tokens = Array.from({ length: 5 }, () => () => rates.countRequest(token('one')));
    expect(await refusals(tokens)).toEqual([undefined, undefined, undefined, undefined, 'requestsPerSecond']);
  });

  it('is not used up by requests over the rate of a token', async () => {
    const rates = ratesWith({ requestsPerSecond: 3 });
    const greedy = Array.from({ length: 4 }, () => () => rates.countRequest(token('greedy', 1)));
    expect(await refusals(greedy)).toEqual([
      undefined,
      'tokenRequestsPerSecond',
      'tokenRequestsPerSecond',
      'tokenRequestsPerSecond',
    ]);
    const others = Array.from({ length: 3 }, () => () => rates.countRequest(token('other')));
    expect(await refusals(others)).toEqual([undefined, undefined, 'requestsPerSecond']);
  });
});

it('a guest has its own rates of requests and messages, and tokens have no rate of messages', async () => {
  const rates = ratesWith({ guestRequestsPerSecond: 1, guestMessagesPerDay: 1 });
  expect(
    await refusals([
      () => rates.countRequest(guest('a')),
      () => rates.countRequest(guest('a')),
      () => rates.countRequest(guest('b')),
      () => rates.countMessage(guest('a')),
      () => rates.countMessage(guest('a')),
      () => rates.countMessage(guest('b')),
      () => rates.countMessage(token('one')),
      () => rates.countMessage(token('one')),
    ]),
  ).toEqual([
    undefined,
    'guestRequestsPerSecond',
    undefined,
    undefined,
    'guestMessagesPerDay',
    undefined,
    undefined,
    undefined,
  ]);
});
