import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { SequenceTap } from './sequence-tap.js';
import { findTarget } from './api.js';

const DEMO = { url: 'http://localhost:8080', tenant: 'demo', token: 'baton_demo' };

describe('the server to call', () => {
  let home: string;
  const target = (options: { url?: string; token?: string }) => findTarget({ BATON_HOME: home }, options);

  beforeAll(() => {
    home = mkdtempSync(join(tmpdir(), 'baton-cli-'));
    writeFileSync(join(home, 'demo.json'), JSON.stringify(DEMO));
  });

  afterAll(() => rmSync(home, { recursive: true }));

  it('is the demo by default', () => {
    expect(target({})).toEqual({ url: DEMO.url, token: DEMO.token });
    expect(target({ token: 'mine' })).toEqual({ url: DEMO.url, token: 'mine' });
    expect(target({ url: 'http://localhost:8080/' })).toMatchObject({ token: DEMO.token });
  });

  it("never gets the demo's token when it is another", () => {
    expect(() => target({ url: 'https://elsewhere.example' })).toThrow(
      'There is no token for https://elsewhere.example: give --token, from npx baton tokens create.',
    );
  });

  it.each(['nonsense', 'ftp://localhost'])('is refused when it is "%s"', (url) =>
    expect(() => target({ url })).toThrow(/is not an http\(s\) URL: give one such as/),
  );

  it('must be given where nothing runs', () => {
    expect(() => findTarget({ BATON_HOME: join(home, 'none') }, {})).toThrow(
      /give --url and --token, or start/,
    );
  });
});

const STREAM = [
  ': heartbeat\n',
  'id: 1\ndata: {"a":1}\n\n',
  'id: 2\r\ndata: {"text":"id: 99"}\r\n\r\n',
  ': heartbeat\n\n',
  'data: {}\n\n',
  `id: 13\ndata: ${'x'.repeat(1000)}\ndata: more\n\n`,
].join('');

/** Every sequence of the stream when it comes in pieces of that size. */
function sequences(size: number): (number | undefined)[] {
  const tap = new SequenceTap();
  for (let at = 0; at < STREAM.length; at += size) tap.feed(STREAM.slice(at, at + size));
  return [tap.next(), tap.next(), tap.next(), tap.next()];
}

describe('the sequences of a stream', () => {
  it.each([1, 2, 7, 100, STREAM.length])('are found when it comes in pieces of %d characters', (size) =>
    expect(sequences(size)).toEqual([1, 2, undefined, 13]),
  );
});
