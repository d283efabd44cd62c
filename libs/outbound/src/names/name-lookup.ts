import { within } from '@baton/telemetry';
import type { Resolver } from 'node:dns/promises';
import type { ResolvedAddress } from './resolved-address.js';

/** The answer of name servers for a name. */
export interface NameAnswer {
  /** Empty if the name does not exist, or has no address. */
  addresses: ResolvedAddress[];
  /** How long the addresses are valid. */
  ttlMs: number;
  /** Resolves when no query is open any more. */
  ended: Promise<unknown>;
}

/** How long to wait for the other address family when one has answered (RFC 8305, section 3). */
const OTHER_FAMILY_MS = 50;

/**
 * Asks name servers for the IPv4 and IPv6 addresses of a full name, at the same time. When one family has answered, the
 * other one has 50 ms more.
 * @throws Error of the resolver, if no server has answered
 */
export async function lookUp(resolver: Resolver, name: string): Promise<NameAnswer> {
  const queries = [
    resolver.resolve4(name, { ttl: true }).then((records) => records.map((each) => ({ ...each, family: 4 }))),
    resolver.resolve6(name, { ttl: true }).then((records) => records.map((each) => ({ ...each, family: 6 }))),
  ];
  const ended = Promise.allSettled(queries);
  const first = await Promise.any(queries).catch(() => undefined);
  const settled = first ? await within(ended, OTHER_FAMILY_MS) : await ended;
  const records = settled?.flatMap((each) => (each.status === 'fulfilled' ? each.value : [])) ?? first ?? [];
  if (records.length === 0) assertAnswered(settled ?? []);
  return {
    addresses: records.map(({ address, family }) => ({ address, family })),
    ttlMs: Math.min(...records.map(({ ttl }) => ttl)) * 1000,
    ended,
  };
}

/** Throws the error of a query that no server has answered. NXDOMAIN is about the name, and answers for both. */
function assertAnswered(settled: readonly PromiseSettledResult<unknown>[]): void {
  const errors = settled.flatMap((each) =>
    each.status === 'rejected' ? [each.reason as NodeJS.ErrnoException] : [],
  );
  if (errors.some(({ code }) => code === 'ENOTFOUND')) return;
  const failure = errors.find(({ code }) => code !== 'ENODATA');
  if (failure) throw failure;
}
