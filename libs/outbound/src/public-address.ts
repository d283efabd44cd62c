import { IPv4, IPv6, parse } from 'ipaddr.js';

/** A public-looking address that reaches the platform of Azure. */
const AZURE_PLATFORM = IPv4.parse('168.63.129.16');
/** The block of all public IPv6 addresses (RFC 4291, section 2.4). */
const GLOBAL_UNICAST: [IPv6, number] = [IPv6.parse('2000::'), 3];
/** IPv4 addresses behind a NAT64 translator (RFC 6052). */
const NAT64: [IPv6, number] = [IPv6.parse('64:ff9b::'), 96];

/**
 * The address that a connection reaches. An IPv4 address written as IPv6 (mapped, or NAT64) becomes IPv4. Zone ids are
 * dropped. Throws an Error for a text that is no address.
 *
 * @param text an address in the format of sockets and resolvers
 */
export function reachedAddress(text: string): IPv4 | IPv6 {
  const address = parse(text);
  if (!(address instanceof IPv6)) return address;
  if (address.isIPv4MappedAddress()) return address.toIPv4Address();
  if (address.match(NAT64)) return new IPv4(address.toByteArray().slice(-4));
  return address;
}

/** Whether the address is public: not private, local, reserved, multicast or of a tunnel. */
export function isPublicAddress(address: IPv4 | IPv6): boolean {
  if (address.range() !== 'unicast') return false;
  if (address instanceof IPv6) return address.match(GLOBAL_UNICAST);
  return !address.match(AZURE_PLATFORM, 32);
}
