import { networkInterfaces } from 'node:os';

type Interfaces = ReturnType<typeof networkInterfaces>;

/** What the address of one family is in the other. `::` takes connections of both. */
const IN_OTHER_FAMILY: Readonly<Record<string, { needs: 'IPv4' | 'IPv6'; instead: string }>> = {
  '::': { needs: 'IPv6', instead: '0.0.0.0' },
  '0.0.0.0': { needs: 'IPv4', instead: '::' },
  '127.0.0.1': { needs: 'IPv4', instead: '::1' },
};

/**
 * The address on which a process listens for `host`. A machine on which IPv6 or IPv4 is off refuses its addresses. There, "all
 * addresses" and 127.0.0.1 become those of the other family: one setting is right on all machines.
 */
export function listenAddress(host: string, interfaces: Interfaces = networkInterfaces()): string {
  const other = IN_OTHER_FAMILY[host];
  const families = new Set(Object.values(interfaces).flatMap((list) => list?.map(({ family }) => family)));
  return !other || families.has(other.needs) || families.size === 0 ? host : other.instead;
}

const EVERY_ADDRESS: ReadonlySet<string> = new Set(['0.0.0.0', '::']);

/** The URL at which this machine reaches a listener of its own. @param host the address of the listener */
export function ownUrl(host: string, port: number | string): string {
  const reachable = EVERY_ADDRESS.has(host) ? listenAddress('127.0.0.1') : host;
  return `http://${reachable.includes(':') ? `[${reachable}]` : reachable}:${port}`;
}
