import { defaultOrigins, mayReceive, originOf, parseOrigins, programOrigin } from './secret-origins.js';

describe('the origins of a secret', () => {
  it.each([
    ['https://API.example.com:443/', 'https://api.example.com'],
    [' http://[::1]:8080 ', 'http://[::1]:8080'],
    ['https://bücher.example', 'https://xn--bcher-kva.example'],
    ['stdio: npx  -y   @acme/notes ', 'stdio:npx -y @acme/notes'],
    ['agent:researcher-2', 'agent:researcher-2'],
  ])('have one spelling: %s', (text, origin) => {
    expect(parseOrigins([text, origin])).toEqual({ origins: [origin] });
  });

  // URL.canParse of Node 20 refuses such a name once V8 has compiled its caller.
  it('are read alike however often', () => {
    const wrong = Array.from({ length: 20_000 }, () => parseOrigins(['https://bücher.example'])).filter(
      (read) => !('origins' in read),
    );
    expect(wrong).toEqual([]);
  });

  it('are at most 32 of 512 characters', () => {
    const all = Array.from({ length: 33 }, (_, i) => `https://a${i}`);
    expect(parseOrigins(all.slice(1))).toHaveProperty('origins.length', 32);
    expect(parseOrigins(all)).toMatchObject({ field: 'origins' });
    expect(parseOrigins([`https://${'a'.repeat(512)}`])).toMatchObject({ field: 'origins[0]' });
  });

  it('of a provider are its own', () => {
    expect(defaultOrigins('google')).toEqual(['https://generativelanguage.googleapis.com']);
    expect(['openai-compatible', 'crm', 'toString', '__proto__'].flatMap(defaultOrigins)).toEqual([]);
  });
});

it('a secret goes to the exact origin, and to a program by the words of its command', () => {
  const to = (origin: string, destination: string) => mayReceive([origin], destination);
  expect(to('https://a.example', originOf('https://a.example:443/v1?x'))).toBe(true);
  for (const url of [
    'http://a.example',
    'https://a.example:444',
    'https://b.a.example',
    'https://a.example.b',
  ])
    expect(to('https://a.example', originOf(url))).toBe(false);
  expect(to('stdio:npx -y', programOrigin('npx', ['-y', '@acme/notes']))).toBe(true);
  expect(to('stdio:npx -y', programOrigin('npx', ['-yes']))).toBe(false);
  expect(to('stdio:npx -y', programOrigin('npx -y', []))).toBe(false);
  expect(to('stdio:npx -y', programOrigin('npx', ['-y @evil/tool']))).toBe(false);
  expect(mayReceive([], 'https://a.example')).toBe(false);
  expect(mayReceive(null, 'https://a.example')).toBe(true);
});
