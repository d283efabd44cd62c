import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { findTarget } from './target.js';

const DEMO = { url: 'http://localhost:8080', tenant: 'demo', token: 'baton_demo' };

describe('the server to call', () => {
  let home: string;
  const target = (options: { url?: string; token?: string }) => findTarget({ BATON_HOME: home }, options);

  beforeAll(() => {
    home = mkdtempSync(join(tmpdir(), 'baton-cli-'));
    writeFileSync(join(home, 'demo.json'), JSON.stringify(DEMO));
  });

  afterAll(() => rmSync(home, { recursive: true }));

  it('is the demo unless told otherwise', () => {
    expect(target({})).toEqual({ url: DEMO.url, token: DEMO.token });
    expect(target({ token: 'mine' })).toEqual({ url: DEMO.url, token: 'mine' });
    expect(target({ url: 'http://localhost:8080/' })).toMatchObject({ token: DEMO.token });
  });

  it("never gets the demo's token when it is another", () => {
    expect(() => target({ url: 'https://elsewhere.example' })).toThrow(
      'No token for https://elsewhere.example is known: give --token, from npx baton tokens create.',
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
