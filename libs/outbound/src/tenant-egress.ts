import type { IPv4, IPv6 } from 'ipaddr.js';
import { isIP } from 'node:net';
import { plainHost } from './allow-list.js';
import { OutboundRefused } from './outbound-refused.js';
import { reachedAddress } from './public-address.js';
import { EgressList } from './egress-list.js';

/** Where a tenant may call, as patterns (`parseEgressPattern`). The lists only narrow what the operator allows. */
export interface EgressLists {
  /** Only these destinations; none = all. */
  allow: readonly string[];
  /** Never these, also if `allow` has them. */
  deny: readonly string[];
}

export const NO_EGRESS_LISTS: EgressLists = { allow: [], deny: [] };

/** The lists of one tenant, ready to be asked. */
export class TenantEgress {
  private readonly allow: EgressList;
  private readonly deny: EgressList;

  constructor(lists: EgressLists) {
    this.allow = new EgressList(lists.allow);
    this.deny = new EgressList(lists.deny);
  }

  /**
   * Why a host may not be called, judged by the host alone: by its name, or by its address if it has no name.
   * @param knowsAddress the addresses of the host will be asked about, too. Otherwise only its name can allow it
   */
  refusalOfHost(host: string, port: string, knowsAddress = true): OutboundRefused | undefined {
    const plain = plainHost(host);
    if (isIP(plain) !== 0) return this.refusalOfAddress(reachedAddress(plain), host, port);
    if (this.deny.hasName(host, port)) return denied(host);
    const mayStill = this.allow.isEmpty || this.allow.hasName(host, port);
    return mayStill || (knowsAddress && this.allow.hasNetworks) ? undefined : notAllowed(host);
  }

  /** Why a host may not be called at this address. */
  refusalOfAddress(address: IPv4 | IPv6, host: string, port: string): OutboundRefused | undefined {
    if (this.deny.hasName(host, port) || this.deny.hasAddress(address, port)) return denied(host);
    const isAllowed =
      this.allow.isEmpty || this.allow.hasName(host, port) || this.allow.hasAddress(address, port);
    return isAllowed ? undefined : notAllowed(host);
  }
}

/** Why a tenant may not call a URL of its settings, as far as that can be known without asking for addresses. */
export function egressRefusal(lists: EgressLists, url: string): string | undefined {
  const parsed = URL.parse(url);
  if (parsed === null) return undefined;
  const { hostname, port, protocol } = parsed;
  return new TenantEgress(lists).refusalOfHost(hostname, portOf(protocol, port))?.message;
}

/** The port of a URL, which leaves out the usual one of its scheme. */
export const portOf = (protocol: string | undefined, port: string | null | undefined): string =>
  port || (protocol === 'https:' ? '443' : '80');

const denied = (host: string): OutboundRefused =>
  new OutboundRefused(
    `"${host}" is in the list of destinations that this tenant may not call (egress_deny). The operator of this ` +
      'server can change the list',
  );

const notAllowed = (host: string): OutboundRefused =>
  new OutboundRefused(
    `"${host}" is not in the list of destinations that this tenant may call (egress_allow). The operator of this ` +
      'server can add it',
  );
