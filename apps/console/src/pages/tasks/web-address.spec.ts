import { webAddress } from './web-address';

it('an address of the web has the host to which it leads', () => {
  expect(webAddress('https://bank.example@evil.example/pay?x=1')).toMatchObject({ host: 'evil.example' });
  expect(webAddress('http://127.0.0.1:8080/')).toMatchObject({ host: '127.0.0.1:8080' });
  // Letters of another alphabet cannot pass as those of a known host.
  expect(webAddress('https://b\u0430nk.example/')?.host).toMatch(/^xn--/);
});

it.each([
  'javascript:alert(1)',
  'JAVASCRIPT:alert(1)',
  'data:text/html,x',
  'file:///etc/passwd',
  'bank.example',
  '',
])('%p is no link', (text) => {
  expect(webAddress(text)).toBeUndefined();
});
