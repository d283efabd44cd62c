import { type IPv4, type IPv6, isValid, parseCIDR } from 'ipaddr.js';
import { reachedAddress } from './public-address.js';

interface AllowedHost {
  host: string;
  /** Absent: every port. */
  port: string | undefined;
}

/** A host name or an address with an optional port: `ollama`, `10.0.0.7:443`, `[::1]:8080`. */
const HOST = /^(?:\[([^\]]+)\]|([^:]+))(?::(\d+))?$/;

/** Addresses that are not public and that the operator allows: the entries of OUTBOUND_ALLOW. */
export class AllowList {
  private readonly networks: [IPv4 | IPv6, number][] = [];
  private readonly hosts: AllowedHost[] = [];

  /** @param entries the validated `Environment.outboundAllow` */
  constructor(entries: readonly string[]) {
    for (const entry of entries) {
      if (entry.includes('/')) this.networks.push(parseCIDR(entry));
      else this.hosts.push(hostOf(entry));
    }
  }

  /** Whether an entry names this host. Then all its addresses are allowed. @param port as text */
  allowsName(host: string, port: string): boolean {
    const name = plainHost(host);
    return this.hosts.some((allowed) => allowed.host === name && (allowed.port ?? port) === port);
  }

  /**
   * Whether an entry allows a connection, by its network, host name or address.
   * @param address the address of the connection
   * @param host the URL's host name, or its address without brackets
   * @param port as text
   */
  allows(address: IPv4 | IPv6, host: string, port: string): boolean {
    if (
      this.networks.some(
        ([network, bits]) => haveSameFamily(address, network) && address.match(network, bits),
      )
    )
      return true;
    const names = [plainHost(host), address.toString()];
    return this.hosts.some(
      (allowed) => names.includes(allowed.host) && (allowed.port === undefined || allowed.port === port),
    );
  }
}

const haveSameFamily = (a: IPv4 | IPv6, b: IPv4 | IPv6): boolean => a.kind() === b.kind();

/** Normalizes a host: lower case, no trailing dot, addresses in the format of ipaddr.js. */
export function plainHost(host: string): string {
  const plain = host
    .toLowerCase()
    .replace(/^\[|\]$/g, '')
    .replace(/\.$/, '');
  return isValid(plain) ? reachedAddress(plain).toString() : plain;
}

function hostOf(entry: string): AllowedHost {
  if (isValid(entry)) return { host: plainHost(entry), port: undefined };
  const [, bracketed, bare, port] = HOST.exec(entry) ?? [];
  return { host: plainHost(bracketed ?? bare ?? entry), port };
}
