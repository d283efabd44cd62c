import { networkOf } from '../http/network-of.js';
import { guestOf } from './guests.js';

const HOST = { tenantId: 'tenant', host: 'open.example' };
const SECRET = '0b7f9f3e-9d1c-4f57-8a3f-0d3c1f8f6f10';
const keyOf = (ip: string, headers: Record<string, string> = {}, host = HOST, key?: Buffer): string =>
  guestOf({ ip, headers }, host, key).key;

describe('a guest', () => {
  it.each([
    ['192.0.2.7', '192.0.2.7'],
    ['::ffff:192.0.2.7', '192.0.2.7'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
    ['2001:0db8:0001:0002::9', '2001:db8:1:2::/64'],
    ['2001:db8::1', '2001:db8:0:0::/64'],
    ['::1', '0:0:0:0::/64'],
    ['fe80::1%eth0', 'fe80:0:0:0::/64'],
    ['64:ff9b::192.0.2.7', '64:ff9b:0:0::/64'],
    ['2001:db8:1:2::1', '2001:db8:1:2::/64'],
    ['', 'unknown'],
  ])('at %s is in the network %s', (ip, network) => {
    expect(networkOf(ip)).toBe(network);
  });

  it('is identified by its secret, at any address, and without one by its address', () => {
    const own = keyOf('192.0.2.7', { 'baton-guest': SECRET });
    expect(keyOf('192.0.2.8', { 'baton-guest': SECRET })).toBe(own);
    expect(keyOf('192.0.2.8', { cookie: `a=b; baton_guest=${SECRET}; c=d` })).toBe(own);
    expect(keyOf('192.0.2.7', { 'baton-guest': `${SECRET}x` })).not.toBe(own);
    expect(keyOf('192.0.2.7')).not.toBe(own);
    expect(keyOf('192.0.2.7')).toBe(keyOf('::ffff:192.0.2.7'));
    expect(keyOf('192.0.2.7')).not.toBe(keyOf('192.0.2.8'));
    expect(keyOf('2001:db8::1')).toBe(keyOf('2001:db8::2'));
  });

  it('is another one at another host, and its key has neither its address nor its secret', () => {
    expect(keyOf('192.0.2.7')).toMatch(/^guest:open\.example:[\w-]{22}$/);
    const tenants = [HOST, { ...HOST, host: 'other.example' }, { ...HOST, tenantId: 'other' }];
    const keys = tenants.map((host) => keyOf('192.0.2.7', {}, host).split(':')[2]);
    expect(new Set([...keys, keyOf('192.0.2.7', {}, HOST, Buffer.alloc(32)).split(':')[2]]).size).toBe(4);
  });

  it.each(['short', `${SECRET} `, 'x'.repeat(129), 'ünguessable-secret', ''])(
    'is not taken with %j',
    (secret) => {
      expect(() => keyOf('192.0.2.7', { 'baton-guest': secret })).toThrow(/^Baton-Guest: must be 16 to 128/);
      expect(() => keyOf('192.0.2.7', { cookie: `baton_guest=${secret};` })).toThrow(/^Baton-Guest: must be/);
    },
  );
});
