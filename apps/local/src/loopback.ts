import { listenAddress } from '@baton/config';

/** The address of this machine for itself: 127.0.0.1, or ::1 on a machine without IPv4. */
export const LOOPBACK = listenAddress('127.0.0.1');

/** An address as URLs have it: IPv6 in brackets. */
export const inUrl = (address: string): string => (address.includes(':') ? `[${address}]` : address);
