import { type LookupFunction, isIP } from 'node:net';
import { buildConnector } from 'undici';
import { type AllowList, plainHost } from './allow-list.js';
import { type TenantEgress, portOf } from './tenant-egress.js';
import { type EgressList } from './egress-list.js';
import { OutboundRefused } from './outbound-refused.js';
import type { Resolve } from './names/name-resolver.js';
import type { ResolvedAddress } from './names/resolved-address.js';
import { type Proxy } from './proxy.js';
import { ProxyError } from './proxy-error.js';
import { isPublicAddress, reachedAddress } from './public-address.js';

/** Where connections may lead, and by which way. */
export interface ConnectRules {
  /** Addresses of the operator's that are not public. */
  allowed: AllowList;
  /** What the operator denies to all tenants. */
  denied: EgressList;
  /** The lists of the tenant. */
  egress: TenantEgress;
  /** The lookups of the tenant. */
  resolve: Resolve;
  proxy?: Proxy | undefined;
  /** The proxy resolves names. Then their addresses are not known here. */
  proxyResolves?: boolean;
  /** Called with the host and the real reason, for the operator. */
  onRefused?: (host: string, reason: string) => void;
}

/** TCP has repeated the first packet three times by then: a host that drops packets is given up. */
const CONNECT_TIMEOUT_MS = 10_000;
/** Addresses of one host that a proxy is asked for, one after another. */
const MAX_TUNNELS = 4;
/** Names of the machine that resolves them (RFC 6761, section 6.3). */
const LOCALHOST = /^(.+\.)?localhost$/;

/**
 * Makes connections for undici, only to allowed addresses. A name is resolved once, and the socket connects to the
 * checked addresses, also through a proxy. That prevents DNS rebinding. Addresses that are not allowed are skipped. If
 * none is left, the connection fails with OutboundRefused. An unknown name and a denied address fail with the same error as a private
 * address. So tenants cannot find out which names the operator's network has. The lists of the tenant have errors of their own: it learns
 * nothing about addresses that are not its own.
 */
export function guardedConnect(rules: ConnectRules): buildConnector.connector {
  const { proxy } = rules;
  return (options, callback) => {
    const host = new GuardedHost(rules, options.hostname, portOf(options.protocol, options.port));
    const refusal = host.refusal();
    if (refusal) return callback(refusal, null);
    if (!proxy) {
      // The lookup has a limit of its own. The time to connect begins after it.
      host.lookup().then(
        (lookup) => buildConnector({ timeout: CONNECT_TIMEOUT_MS, lookup })(options, callback),
        (error: unknown) => callback(error as Error, null),
      );
      return;
    }
    host.tunnel(proxy).then(
      (socket) => {
        if (options.protocol !== 'https:') return callback(null, socket.setNoDelay(true));
        buildConnector({ timeout: CONNECT_TIMEOUT_MS })({ ...options, httpSocket: socket }, callback);
      },
      (error: unknown) => callback(error as Error, null),
    );
  };
}

/** Rejects with OutboundRefused if no connection to a URL is allowed. Opens none. */
export async function assertReachable(rules: ConnectRules, { hostname, protocol, port }: URL): Promise<void> {
  const host = new GuardedHost(rules, plainHost(hostname), portOf(protocol, port));
  const refusal = host.refusal();
  if (refusal) throw refusal;
  await host.check();
}

/** The host of one connection. */
class GuardedHost {
  constructor(
    private readonly rules: ConnectRules,
    private readonly host: string,
    private readonly port: string,
  ) {}

  /** Why it may not be called, without its addresses. */
  refusal(): OutboundRefused | undefined {
    const { host, port } = this;
    const { allowed, denied, egress } = this.rules;
    if (denied.hasName(host, port)) return this.refuse('OUTBOUND_DENY names it');
    // Sockets resolve only names. An address in the URL is checked here.
    if (isIP(host)) {
      const reason = this.whyNotReachable({ address: host });
      return reason === undefined ? egress.refusalOfHost(host, port) : this.refuse(reason);
    }
    if (this.isResolvedElsewhere && LOCALHOST.test(plainHost(host)) && !allowed.allowsName(host, port))
      return this.refuse('it would be the machine of the proxy');
    return egress.refusalOfHost(host, port, !this.isResolvedElsewhere);
  }

  /** Its addresses that may be called, at least one. Rejects with OutboundRefused. */
  async addresses(): Promise<ResolvedAddress[]> {
    const { host, port } = this;
    const { resolve, allowed, egress } = this.rules;
    const found = await resolve(host).catch((error: unknown) => {
      // What the operator has named is no secret, and may be away for a moment.
      if ((error as NodeJS.ErrnoException).code !== 'ENOTFOUND' || allowed.allowsName(host, port))
        throw error;
      throw this.refuse('the name does not exist');
    });
    const reasons = found.map((each) => this.whyNotReachable(each));
    const reachable = found.filter((_, i) => reasons[i] === undefined);
    if (reachable.length === 0) throw this.refuse(reasons[0] ?? 'its name has no address');
    // Only now, because a tenant may not learn which private address a name has.
    const refusals = reachable.map(({ address }) =>
      egress.refusalOfAddress(reachedAddress(address), host, port),
    );
    const usable = reachable.filter((_, i) => refusals[i] === undefined);
    if (usable.length === 0 && refusals[0]) throw refusals[0];
    return usable;
  }

  /** The lookup for its socket: the addresses that were checked. An address needs none. */
  async lookup(): Promise<LookupFunction | undefined> {
    return isIP(this.host) ? undefined : lookupOf(await this.addresses());
  }

  /** Rejects with OutboundRefused if none of its addresses may be called, as far as they are known here. */
  async check(): Promise<void> {
    if (!this.isResolvedElsewhere && !isIP(this.host)) await this.addresses();
  }

  /** A connection through the proxy. Rejects with OutboundRefused or ProxyError. */
  async tunnel(proxy: Proxy) {
    const { host, port } = this;
    const signal = AbortSignal.timeout(CONNECT_TIMEOUT_MS);
    const isKnown = this.isResolvedElsewhere || isIP(host) !== 0;
    const targets = isKnown ? [{ address: host }] : await this.addresses();
    let failure: unknown;
    for (const { address } of targets.slice(0, MAX_TUNNELS)) {
      try {
        return await proxy.tunnel(address, port, signal);
      } catch (error) {
        failure = error;
      }
    }
    if (failure instanceof ProxyError) this.rules.onRefused?.(host, failure.message);
    throw failure;
  }

  private get isResolvedElsewhere(): boolean {
    return this.rules.proxy !== undefined && this.rules.proxyResolves === true;
  }

  /** Why the rules of the operator forbid every tenant to call the host at this address. */
  private whyNotReachable({ address }: { address: string }): string | undefined {
    const { host, port } = this;
    const reached = reachedAddress(address);
    if (this.rules.denied.hasAddress(reached, port)) return 'OUTBOUND_DENY has its address';
    const isReachable = isPublicAddress(reached) || this.rules.allowed.allows(reached, host, port);
    if (isReachable) return undefined;
    return isIP(host) ? 'the address is not public' : 'none of its addresses is public';
  }

  /** The message shows no address, and is the same for a name that does not exist. */
  private refuse(reason: string): OutboundRefused {
    const { host } = this;
    this.rules.onRefused?.(host, reason);
    return new OutboundRefused(
      `"${host}" is not at a public address, so agents may not call it. The operator of this server can allow it ` +
        `with OUTBOUND_ALLOW${isIP(host) ? '' : '. Check the spelling of its name'}`,
    );
  }
}

const lookupOf =
  (addresses: ResolvedAddress[]): LookupFunction =>
  (_hostname, options, callback) => {
    const [first] = addresses;
    if (options.all || !first) callback(null, addresses);
    else callback(null, first.address, first.family);
  };
