import { type IPv4, type IPv6, parse, parseCIDR } from 'ipaddr.js';
import { isIP } from 'node:net';

/** What a list of destinations matches: hosts by their name, or a network. Either may be limited to one port. */
export interface EgressPattern {
  /** The pattern as it is stored and shown: lower case, IDNA names, plain addresses. */
  text: string;
  /** A host name. With `subdomains`, every name below it, but not the name itself. */
  name?: string;
  subdomains?: boolean;
  /** A network and the bits of its prefix. An address is a network of one. */
  network?: [IPv4 | IPv6, number];
  port?: string;
}

/** Maximum number of patterns of one list of a tenant. */
export const MAX_EGRESS_PATTERNS = 200;
/** What a pattern must be, for errors. */
export const EGRESS_PATTERN_REMEDY =
  'use host names (api.example.com), names below one (*.example.com), addresses and networks (10.0.0.0/8), each but ' +
  'networks with a port if you like (api.example.com:443)';

/** A name, or an address as in a URL, perhaps with `*.` before it and a port behind it. */
const HOST = /^(\*\.)?(\[[0-9a-f:.]+\]|[^\s:/\\@?#%*[\]]+)(?::(\d{1,5}))?$/i;
const NAME = /^[\w-]+(\.[\w-]+)*$/;
/** A name, and some more for a port. */
const MAX_LENGTH = 300;
/** Characters of a name of the DNS (RFC 1035 §2.3.4). */
const MAX_NAME = 253;
/** IPv6 addresses that reach an IPv4 address. The guard judges them as that, so such a pattern would match nothing. */
const IPV4_IN_IPV6: ReadonlySet<string> = new Set(['ipv4Mapped', 'rfc6052']);

/** Reads one pattern. Undefined: it is not a pattern. */
export function parseEgressPattern(given: string): EgressPattern | undefined {
  const entry = given.trim();
  if (entry.length > MAX_LENGTH) return undefined;
  if (entry.includes('/')) return networkPattern(entry);
  if (isIP(entry) === 6) return addressPattern(entry);
  const [, wildcard, host, port] = HOST.exec(entry) ?? [];
  // A URL reads every notation of names and addresses just as a call to it does: IDNA, 0x7f.1, trailing dots.
  const url = host === undefined ? null : URL.parse(`http://${host}/`);
  if (url === null) return undefined;
  if (port !== undefined && !(Number(port) >= 1 && Number(port) <= 65_535)) return undefined;
  const name = url.hostname.replace(/\.$/, '');
  const ofPort = port === undefined ? undefined : String(Number(port));
  const address = name.replace(/^\[|\]$/g, '');
  if (isIP(address) !== 0) return wildcard === undefined ? addressPattern(address, ofPort) : undefined;
  if (!NAME.test(name) || name.length > MAX_NAME) return undefined;
  return {
    text: `${wildcard ?? ''}${name}${ofPort === undefined ? '' : `:${ofPort}`}`,
    name,
    subdomains: wildcard !== undefined,
    ...(ofPort !== undefined && { port: ofPort }),
  };
}

function networkPattern(entry: string): EgressPattern | undefined {
  const [text = '', bits = '', ...rest] = entry.split('/');
  const most = { 4: 32, 6: 128 }[isIP(text)];
  if (most === undefined || rest.length > 0 || !/^\d{1,3}$/.test(bits) || Number(bits) > most)
    return undefined;
  if (text.includes('%')) return undefined;
  const network = parseCIDR(`${text}/${Number(bits)}`);
  if (IPV4_IN_IPV6.has(network[0].range())) return undefined;
  return { text: `${network[0].toString()}/${network[1]}`, network };
}

function addressPattern(text: string, port?: string): EgressPattern | undefined {
  if (text.includes('%')) return undefined;
  const address = parse(text);
  if (IPV4_IN_IPV6.has(address.range())) return undefined;
  const isIPv6 = address.kind() === 'ipv6';
  const plain = address.toString();
  return {
    text: port === undefined ? plain : `${isIPv6 ? `[${plain}]` : plain}:${port}`,
    network: [address, isIPv6 ? 128 : 32],
    ...(port !== undefined && { port }),
  };
}
