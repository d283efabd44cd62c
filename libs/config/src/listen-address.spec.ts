import type { NetworkInterfaceInfo, networkInterfaces } from 'node:os';
import { listenAddress } from './listen-address.js';

type Interfaces = ReturnType<typeof networkInterfaces>;

/** A machine with these addresses. */
const machine = (...addresses: string[]): Interfaces => ({
  lo: addresses.map((address) => ({
    address,
    family: address.includes(':') ? 'IPv6' : 'IPv4',
  })) as NetworkInterfaceInfo[],
});

describe('the address to listen on', () => {
  it.each([
    ['::', machine('127.0.0.1', '::1'), '::'],
    ['::', machine('::1'), '::'],
    ['::', machine('127.0.0.1', '10.0.0.1'), '0.0.0.0'],
    ['0.0.0.0', machine('127.0.0.1'), '0.0.0.0'],
    ['0.0.0.0', machine('::1', 'fd00::7'), '::'],
    ['127.0.0.1', machine('127.0.0.1', '::1'), '127.0.0.1'],
    ['127.0.0.1', machine('::1'), '::1'],
    ['127.0.0.1', {}, '127.0.0.1'],
  ])('for %s, with the addresses %j, is %s', (host, interfaces, address) => {
    expect(listenAddress(host, interfaces)).toBe(address);
  });

  it('is HOST for an address of one interface', () => {
    expect(listenAddress('::1', machine('127.0.0.1'))).toBe('::1');
    expect(listenAddress('10.0.0.1', machine('::1'))).toBe('10.0.0.1');
  });
});
