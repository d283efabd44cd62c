import { parseHost } from './bound-hosts.js';

it.each([
  ['agents.example.com', 'agents.example.com'],
  ['Agents.Example.COM:8443', 'agents.example.com'],
  ['agents.example.com.', 'agents.example.com'],
  ['bücher.example', 'xn--bcher-kva.example'],
  ['localhost:8080', 'localhost'],
  ['127.0.0.1', '127.0.0.1'],
  ['[::1]:8080', '[::1]'],
])('%s is stored as %s', (text, host) => {
  expect(parseHost(text)).toBe(host);
});

it.each([
  '',
  'https://x.com',
  'x.com/path',
  'x.com?y',
  '*.x.com',
  'a b',
  '::1',
  'me@x.com',
  'x%41.com',
  'a'.repeat(254),
  '\0',
  'bücher.example/x',
])('%j is no host', (text) => {
  expect(() => parseHost(text)).toThrow('cannot be a host');
});
