import { IPv4, IPv6, parse } from 'ipaddr.js';

/** Addresses of the global unicast block that still are not a stranger's server. */
const AZURE_PLATFORM = IPv4.parse('168.63.129.16');
/** IPv6 hands out public addresses from here only (RFC 4291, section 2.4). */
const GLOBAL_UNICAST: [IPv6, number] = [IPv6.parse('2000::'), 3];
/** An IPv4 address behind a translator (RFC 6052). Networks without IPv4 see every IPv4 host like this. */
const NAT64: [IPv6, number] = [IPv6.parse('64:ff9b::'), 96];

/**
 * The address that a connection would reach: an IPv4 address that is written as IPv6 (mapped, or behind NAT64)
 * is that IPv4 address. Zone ids are left out.
 *
 * @param text an address as sockets and resolvers write it; throws an Error if it is none
 */
export function reachedAddress(text: string): IPv4 | IPv6 {
  const address = parse(text);
  if (!(address instanceof IPv6)) return address;
  if (address.isIPv4MappedAddress()) return address.toIPv4Address();
  if (address.match(NAT64)) return new IPv4(address.toByteArray().slice(-4));
  return address;
}

/** Whether anybody on the internet may have this address: not private, local, reserved, multicast or a tunnel's. */
export function isPublicAddress(address: IPv4 | IPv6): boolean {
  if (address.range() !== 'unicast') return false;
  if (address instanceof IPv6) return address.match(GLOBAL_UNICAST);
  return !address.match(AZURE_PLATFORM, 32);
}
