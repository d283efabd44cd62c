import { FakeIssuer, trust } from './issuer.fixture.js';
import { IssuerKeys } from './issuer-keys.js';
import { readIssuerKeys } from './read-issuer-keys.js';

const MINUTE = 60_000;
const DISCOVERY = 'https://id.example.com/realm/.well-known/openid-configuration';
const JWKS = 'https://keys.example.com/jwks';

let issuer: FakeIssuer;
beforeEach(async () => {
  issuer = await FakeIssuer.start();
});

describe('the keys of an issuer', () => {
  let time: number;
  let reads: number;
  let failures: unknown[];
  let isAway: boolean;
  let keys: IssuerKeys;

  beforeEach(() => {
    [time, reads, failures, isAway] = [0, 0, [], false];
    const read = () => {
      reads += 1;
      return isAway ? Promise.reject(new Error('away')) : readIssuerKeys(issuer.outbound, trust());
    };
    keys = new IssuerKeys(
      read,
      (error) => failures.push(error),
      () => time,
    );
  });

  const find = async (kid = 'k1') => keys.find({ alg: 'ES256', kid }, { payload: '', signature: '' });
  const unknown = (kid: string) =>
    expect(find(kid)).rejects.toMatchObject({ code: 'ERR_JWKS_NO_MATCHING_KEY' });

  it('are read once for all who ask, and again after ten minutes', async () => {
    await Promise.all([find(), find(), find()]);
    time = 10 * MINUTE - 1;
    await find();
    expect(reads).toBe(1);
    time += 1;
    await Promise.all([find(), find()]);
    expect(reads).toBe(2);
  });

  it('are read again for a key that is new, by all who have a token of it', async () => {
    await find();
    await issuer.addKey('k2');
    await Promise.all([find('k2'), find('k2'), find('k2')]);
    expect(reads).toBe(2);
  });

  it('no longer include a key that the issuer has withdrawn', async () => {
    await find();
    issuer.keys.length = 0;
    await issuer.addKey('k2');
    await find('k2');
    await unknown('k1');
  });

  it('are read at most twice a minute, whatever keys tokens name', async () => {
    await find();
    for (let i = 0; i < 100; i++) await unknown(`random-${String(i)}`);
    expect(reads).toBe(2);
    time = MINUTE / 2;
    for (let i = 0; i < 100; i++) await unknown(`random-${String(i)}`);
    expect(reads).toBe(3);
    await find();
  });

  it('stay valid for a day while the issuer is away, and no request waits for it twice', async () => {
    await find();
    isAway = true;
    time = 23 * 60 * MINUTE;
    for (let i = 0; i < 10; i++) await find();
    expect(reads).toBe(2);
    expect(failures).toHaveLength(1);
    time = 24 * 60 * MINUTE;
    await expect(find()).rejects.toMatchObject({ kind: 'unavailable', detail: { retryAfterSeconds: 30 } });
    isAway = false;
    time += MINUTE;
    await find();
  });

  it('that were never read are asked for at most twice a minute', async () => {
    isAway = true;
    for (let i = 0; i < 10; i++) await expect(find()).rejects.toMatchObject({ kind: 'unavailable' });
    expect(reads).toBe(1);
    isAway = false;
    time = MINUTE / 2;
    await find();
  });
});

describe('reading the keys of an issuer', () => {
  const read = (jwksUrl: string | null = null) => readIssuerKeys(issuer.outbound, trust({ jwksUrl }));

  it('begins with the discovery document, unless their URL is known', async () => {
    expect((await read()).keys).toHaveLength(1);
    expect(issuer.asked.splice(0)).toEqual([DISCOVERY, JWKS]);
    expect((await read(JWKS)).keys).toHaveLength(1);
    expect(issuer.asked).toEqual([JWKS]);
  });

  it.each<[string, string, () => Response, RegExp]>([
    [
      'of another issuer',
      DISCOVERY,
      () => Response.json({ issuer: 'https://evil.example', jwks_uri: JWKS }),
      /is about the issuer "https:\/\/evil\.example"/,
    ],
    [
      'with keys in plain text',
      DISCOVERY,
      () => Response.json({ issuer: trust().issuer, jwks_uri: 'http://keys.example.com/jwks' }),
      /without https/,
    ],
    ['without the URL of keys', DISCOVERY, () => Response.json({ issuer: trust().issuer }), /jwks_uri/],
    ['that is no JSON', DISCOVERY, () => new Response('<html>'), /is not what OpenID Connect describes/],
    ['that is not there', DISCOVERY, () => new Response('', { status: 404 }), /status 404/],
    [
      'with keys that are none',
      JWKS,
      () => Response.json({ keys: ['x'] }),
      /is not what OpenID Connect describes/,
    ],
    [
      'with too many keys',
      JWKS,
      () => Response.json({ keys: Array(101).fill({ kty: 'EC' }) }),
      /more than 100 keys/,
    ],
  ])('fails for a document %s', async (_, url, page, reason) => {
    issuer.pages[url] = page;
    await expect(read()).rejects.toThrow(reason);
  });

  it('leaves out keys that are so long that each check would be slow', async () => {
    issuer.pages[JWKS] = () => Response.json({ keys: [{ kty: 'RSA', e: 'AQAB', n: 'x'.repeat(1367) }] });
    expect(await read()).toEqual({ keys: [] });
  });
});
