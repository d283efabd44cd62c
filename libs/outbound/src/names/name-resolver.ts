import { within } from '@baton/telemetry';
import { Resolver } from 'node:dns/promises';
import { LRUCache } from 'lru-cache';
import { lookUp } from './name-lookup.js';
import type { ResolvedAddress } from './resolved-address.js';
import { candidates, localAddresses, SystemNames, type SystemNamesState } from './system-names.js';

/** Finds all addresses of a host name. Rejects with the code ENOTFOUND if there are none, else with EAI_AGAIN. */
export type Resolve = (hostname: string) => Promise<ResolvedAddress[]>;

export interface NameResolverOptions {
  /** Name servers, as `address:port`. Default: those of the system. */
  servers?: readonly string[];
  system?: Pick<SystemNames, 'read'>;
  /** Called when a lookup is refused because its tenant has too many. */
  onExcess?: () => void;
}

/** Maximum lookups of one tenant at name servers at the same time. Its others wait, and delay no other tenant's. */
const MAX_AT_ONCE = 16;
/** Maximum lookups of one tenant that wait. */
const MAX_WAITING = 256;
/** Maximum time of a lookup, waiting included. */
const LOOKUP_MS = 5_000;
/** c-ares asks each server twice: for 1.5 s, then for twice that. */
const SERVER_MS = 1_500;
const TRIES = 2;
/** Shortest time that the cache keeps an address, also if the TTL of its name server is shorter. */
const MIN_TTL_MS = 1_000;
/** Longest time. A host that has moved is found after a minute. */
const MAX_TTL_MS = 60_000;
/** How long the cache keeps that a name has no address, or that no server has answered for it. */
const NEGATIVE_TTL_MS = 5_000;
/** Names in the cache. */
const MAX_CACHED = 10_000;
/** Tenants whose lookups are counted. */
const MAX_SHARES = 1_000;

/** The cached answer for a name. */
type KnownName = { addresses: ResolvedAddress[] } | { error: NameError };

/**
 * Resolves the names that tenants write: the hosts file first, then name servers through c-ares. The system's own lookup
 * would run on the four threads that all file access of Node shares, and a name whose servers are silent holds one of them
 * for many seconds. Here a tenant has a share: its silent names delay its own lookups only. All tenants share the cache,
 * which also keeps that a name has no address.
 */
export class NameResolver {
  private readonly system: Pick<SystemNames, 'read'>;
  private readonly cache = new LRUCache<string, KnownName>({ max: MAX_CACHED });
  /** Lookups that name servers were asked for. Those that wait for their tenant's share are not here. */
  private readonly inFlight = new Map<string, Promise<KnownName>>();
  private readonly shares = new LRUCache<string, TenantShare>({ max: MAX_SHARES });
  private resolvConf = '';

  constructor(private readonly options: NameResolverOptions = {}) {
    this.system = options.system ?? new SystemNames();
  }

  /** The lookups of one tenant. */
  forTenant(tenantId: string): Resolve {
    return (hostname) => this.resolve(tenantId, hostname.toLowerCase());
  }

  private async resolve(tenantId: string, name: string): Promise<ResolvedAddress[]> {
    const system = await this.system.read();
    const local = localAddresses(system, name.replace(/\.$/, ''));
    if (local) return [...local];
    if (system.resolvConf !== this.resolvConf) this.useNewServers(system);
    const answer =
      this.cache.get(name) ??
      (await within(
        this.inFlight.get(name) ?? this.queryNames(this.shareOf(tenantId), system, name),
        LOOKUP_MS,
      ));
    if (!answer) throw new NameError(name, 'EAI_AGAIN', 'no answer in time');
    if ('error' in answer) throw answer.error;
    return answer.addresses;
  }

  /** Asks name servers, when the tenant's share has room. */
  private async queryNames(share: TenantShare, system: SystemNamesState, name: string): Promise<KnownName> {
    const began = performance.now();
    if (!(await share.enter())) {
      this.options.onExcess?.();
      return { error: new NameError(name, 'EAI_AGAIN', 'too many lookups of this tenant at once') };
    }
    // While this lookup waited, another one may have found the name, or its caller has left.
    const known = this.cache.get(name) ?? this.inFlight.get(name);
    if (known || performance.now() - began >= LOOKUP_MS) {
      share.leave();
      return known ?? { error: new NameError(name, 'EAI_AGAIN', 'no answer in time') };
    }
    const lookup = this.lookUp(share, system, name);
    this.inFlight.set(name, lookup);
    return lookup.finally(() => this.inFlight.delete(name));
  }

  /** Tries the full names one after another. The slot in the share is free when no query is open any more. */
  private async lookUp(share: TenantShare, system: SystemNamesState, name: string): Promise<KnownName> {
    const queries: Promise<unknown>[] = [];
    let answer: KnownName = { error: new NameError(name, 'ENOTFOUND') };
    let ttlMs = NEGATIVE_TTL_MS;
    try {
      for (const full of candidates(system, name)) {
        const found = await lookUp(share.resolver, full);
        queries.push(found.ended);
        if (found.addresses.length === 0) continue;
        answer = { addresses: found.addresses };
        ttlMs = Math.min(Math.max(found.ttlMs, MIN_TTL_MS), MAX_TTL_MS);
        break;
      }
    } catch (error) {
      const { code, message } = error as NodeJS.ErrnoException;
      answer = { error: new NameError(name, 'EAI_AGAIN', code ?? message) };
    }
    void Promise.allSettled(queries).then(() => share.leave());
    this.cache.set(name, answer, { ttl: ttlMs });
    return answer;
  }

  private shareOf(tenantId: string): TenantShare {
    let share = this.shares.get(tenantId);
    if (!share) {
      share = new TenantShare(this.options.servers);
      this.shares.set(tenantId, share);
    }
    return share;
  }

  /** c-ares reads the name servers once, when a resolver is made. */
  private useNewServers({ resolvConf }: SystemNamesState): void {
    this.resolvConf = resolvConf;
    this.shares.clear();
    this.cache.clear();
  }
}

/** The lookups of one tenant: c-ares with sockets of its own, and a bound of lookups at the same time. */
class TenantShare {
  readonly resolver = new Resolver({ timeout: SERVER_MS, tries: TRIES });
  private active = 0;
  private readonly waiting: (() => void)[] = [];

  constructor(servers: readonly string[] | undefined) {
    if (servers && servers.length > 0) this.resolver.setServers(servers);
  }

  /** Waits for a slot. @returns false if too many wait already */
  async enter(): Promise<boolean> {
    if (this.active < MAX_AT_ONCE) {
      this.active += 1;
      return true;
    }
    if (this.waiting.length >= MAX_WAITING) return false;
    await new Promise<void>((resolve) => this.waiting.push(resolve));
    return true;
  }

  /** Gives the slot to the next lookup that waits. */
  leave(): void {
    const next = this.waiting.shift();
    if (next) next();
    else this.active -= 1;
  }
}

/** No address was found. `ENOTFOUND`: there is none. `EAI_AGAIN`: it is unknown whether the name has one. */
class NameError extends Error {
  override readonly name = 'NameError';

  constructor(
    hostname: string,
    readonly code: 'ENOTFOUND' | 'EAI_AGAIN',
    reason: string = code,
  ) {
    super(`The lookup of "${hostname}" failed: ${reason}`);
  }
}
