import { isPublicAddress, reachedAddress } from '@baton/outbound';

/** Whether a host of a URL is this machine, or an address inside of a network. Other names are not looked up. */
export function isInnerHost(hostname: string): boolean {
  const host = hostname.replace(/\.$/, '').toLowerCase();
  if (host === 'localhost' || host.endsWith('.localhost')) return true;
  const address = host.replace(/^\[|\]$/g, '');
  // The parser of URLs writes every form of an IPv4 address with four decimal numbers.
  if (!address.includes(':') && !/^[\d.]+$/.test(address)) return false;
  return !isPublicAddress(reachedAddress(address));
}
