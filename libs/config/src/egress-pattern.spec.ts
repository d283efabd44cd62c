import { parseEgressPattern } from './egress-pattern.js';
import { loadEnvironment } from './environment.js';
import { EnvironmentError } from './environment-error.js';

describe('a pattern of destinations', () => {
  it.each([
    ['api.example.com', 'api.example.com'],
    ['API.Example.COM.', 'api.example.com'],
    ['*.Example.com', '*.example.com'],
    ['api.example.com:0443', 'api.example.com:443'],
    ['*.example.com:8443', '*.example.com:8443'],
    ['bücher.example', 'xn--bcher-kva.example'],
    ['*.bücher.example', '*.xn--bcher-kva.example'],
    ['ollama', 'ollama'],
    ['my_service', 'my_service'],
    ['10.0.0.7', '10.0.0.7'],
    ['2130706433', '127.0.0.1'],
    ['0x7f.1:8080', '127.0.0.1:8080'],
    ['①②⑦.0.0.1', '127.0.0.1'],
    ['10.0.0.0/8', '10.0.0.0/8'],
    ['2001:DB8:0::1', '2001:db8::1'],
    ['[2001:db8::1]:443', '[2001:db8::1]:443'],
    ['2001:db8::/32', '2001:db8::/32'],
    ['::/0', '::/0'],
  ])('%s is stored as %s', (given, text) => {
    expect(parseEgressPattern(given)?.text).toBe(text);
    expect(parseEgressPattern(text)?.text).toBe(text);
  });

  it.each([
    '',
    '*',
    '*.',
    '*.*.example.com',
    'a.*.example.com',
    'example.*',
    '.example.com',
    'a..example.com',
    'https://example.com',
    'example.com/path',
    'me@example.com',
    'example.com?x',
    'a b',
    '[::1',
    'example.com:0',
    'example.com:65536',
    'example.com:',
    '*.10.0.0.1',
    '10.0.0.0/33',
    '10.1/8',
    'corp/8',
    '10.0.0.0/8:443',
    '10.0.0.0/8/8',
    '::1/129',
    'fe80::1%eth0',
    'fe80::%eth0/64',
    '1.2.3.4.5',
    '256.1.1.1',
    '::ffff:10.0.0.1',
    '[::ffff:a00:1]:80',
    '::ffff:10.0.0.0/104',
    '64:ff9b::a00:1',
    '64:ff9b::/96',
    `${'a'.repeat(250)}.com`,
    'x'.repeat(400),
  ])('is not %s', (wrong) => {
    expect(parseEgressPattern(wrong)).toBeUndefined();
  });
});

describe('OUTBOUND_DENY and OUTBOUND_PROXY', () => {
  const load = (source: Record<string, string>) =>
    loadEnvironment({ DATABASE_URL: 'postgres://baton@localhost/baton', ...source });

  it('are read, the patterns in their plain form', () => {
    const { outboundDeny, outboundProxy } = load({
      OUTBOUND_DENY: ' *.Corp.example, 0x7f.1 ,',
      OUTBOUND_PROXY: 'http://me:secret@proxy:3128',
    });
    expect(outboundDeny).toEqual(['*.corp.example', '127.0.0.1']);
    expect(outboundProxy).toBe('http://me:secret@proxy:3128');
  });

  it('are refused with the remedy, and without the password', () => {
    expect(() => load({ OUTBOUND_DENY: 'https://corp.example' })).toThrow(/OUTBOUND_DENY.*\*\.example\.com/);
    const wrong = () => load({ OUTBOUND_PROXY: 'socks5://me:secret@proxy' });
    expect(wrong).toThrow(EnvironmentError);
    expect(wrong).toThrow(/OUTBOUND_PROXY/);
    expect(wrong).not.toThrow(/secret/);
  });
});
