import { ProtocolError } from '@baton/a2a';
import { loadEnvironment } from '@baton/config';
import type { IssuerStore, TrustedIssuer } from '@baton/database';
import type { Messaging } from '@baton/messaging';
import type { EgressLists, Outbound } from '@baton/outbound';
import { Logger } from '@baton/telemetry';
import { type CryptoKey, SignJWT, UnsecuredJWT, exportSPKI, importJWK } from 'jose';
import { ControlInMemory } from '../control.fixture.js';
import { isJwt } from '../token.service.js';
import { FakeIssuer, trust } from './issuer.fixture.js';
import { JwtService } from './jwt.service.js';

const UNTRUSTED = 'the token is not signed by an issuer that is trusted here';
const now = (): number => Math.floor(Date.now() / 1000);

describe('tokens of an issuer that a tenant trusts', () => {
  const control = new ControlInMemory();
  const opened: JwtService[] = [];
  let issuer: FakeIssuer;
  let rows: TrustedIssuer[];
  let service: JwtService;
  let lookups: string[];
  /** Issuer and user, as they are stored. */
  let noted: string[];
  /** Where tenants may call. */
  let lists: Record<string, EgressLists>;

  async function start(): Promise<JwtService> {
    const store: Pick<IssuerStore, 'byIssuer' | 'noteUser'> = {
      noteUser: async ({ id }, caller) => void noted.push(`${id} ${caller}`),
      byIssuer: (url) => {
        lookups.push(url);
        return Promise.resolve(rows.filter((row) => row.issuer === url));
      },
    };
    const outbound = { forTenant: (_share: string, own: () => Promise<EgressLists>) => issuer.wayOf(own) };
    const started = new JwtService(
      store as IssuerStore,
      control as unknown as Messaging,
      outbound as Partial<Outbound> as Outbound,
      Logger.silent(),
      loadEnvironment({ DATABASE_URL: 'postgres://none', TOKEN_CACHE_MS: '3600000' }),
      { egress: (tenantId) => Promise.resolve(lists[tenantId] ?? { allow: [], deny: [] }) },
    );
    await started.onModuleInit();
    opened.push(started);
    return started;
  }

  beforeEach(async () => {
    issuer = await FakeIssuer.start();
    rows = [trust()];
    lookups = [];
    noted = [];
    lists = {};
    service = await start();
  });
  afterEach(() => {
    for (const each of opened.splice(0)) each.onModuleDestroy();
  });

  const refusal = async (token: string | Promise<string>): Promise<string> => {
    const error: unknown = await service.verify(await token).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(ProtocolError);
    expect((error as ProtocolError).kind).toBe('unauthenticated');
    return (error as ProtocolError).message;
  };

  it('name their user, tenant, scopes and end', async () => {
    const exp = now() + 60;
    const caller = await service.verify(await issuer.token({ exp }));
    expect(caller).toEqual({
      tenantId: 'acme',
      principal: { kind: 'user', key: expect.stringMatching(/^user:[\w-]{43}$/) as string },
      scopes: ['agents:call'],
      expiresAt: new Date(exp * 1000),
      issuer: { url: issuer.url, id: 'i1' },
    });
    const again = await service.verify(await issuer.token({ jti: 'another' }));
    expect(again.principal).toEqual(caller.principal);
    const bob = await service.verify(await issuer.token({ sub: 'bob' }));
    expect(bob.principal).not.toEqual(caller.principal);
    expect(noted).toEqual([`i1 ${caller.principal.key}`, `i1 ${bob.principal.key}`]);
  });

  it.each(['RS256', 'PS256', 'ES384', 'EdDSA'])('may be signed with %s', async (alg) => {
    await issuer.addKey('other', alg);
    expect(await service.verify(await issuer.token())).toMatchObject({ tenantId: 'acme' });
  });

  it.each<[string, (issuer: FakeIssuer) => string | Promise<string>, string | RegExp]>([
    ['a wrong signature', async (i) => `${(await i.token()).slice(0, -8)}AAAAAAAA`, UNTRUSTED],
    ['another issuer', (i) => i.token({ iss: 'https://evil.example' }), UNTRUSTED],
    ['an issuer with a slash more', (i) => i.token({ iss: `${i.url}/` }), UNTRUSTED],
    ['no issuer', (i) => i.token({ iss: undefined }), /no issuer/],
    ['U+0000 in the issuer', (i) => i.token({ iss: 'https://x\0' }), /no issuer/],
    ['an unknown key', (i) => i.token({}, { kid: 'other' }), UNTRUSTED],
    [
      'a key of its own',
      async (i) => i.token({}, { kid: 'x', jwk: (await FakeIssuer.start()).keys[0]!.jwk }),
      UNTRUSTED,
    ],
    ['a URL of keys', (i) => i.token({}, { kid: 'x', jku: 'https://evil.example/jwks' }), UNTRUSTED],
    ['another audience', (i) => i.token({ aud: ['a', 'b'] }), /audience/],
    ['an audience with a suffix', (i) => i.token({ aud: 'baton2' }), /audience/],
    ['no audience', (i) => i.token({ aud: undefined }), /no valid aud/],
    ['an end in the past', (i) => i.token({ exp: now() - 31 }), 'the token has expired'],
    ['an end that is now', (i) => i.token({ exp: now() }), 'the token has expired'],
    ['no end', (i) => i.token({ exp: undefined }), /no valid exp/],
    ['an end that is no time', (i) => i.token({ exp: 1e300 }), /no valid exp/],
    ['a start in the future', (i) => i.token({ nbf: now() + 60 }), /not valid yet/],
    ['no subject', (i) => i.token({ sub: undefined }), /no subject/],
    ['an empty subject', (i) => i.token({ sub: '' }), /no subject/],
    ['a long subject', (i) => i.token({ sub: 'x'.repeat(1025) }), /no subject/],
    ['the type of a logout token', (i) => i.token({}, { typ: 'logout+jwt' }), /type \(typ\)/],
    ['a type that is no text', (i) => i.token({}, { typ: { toString: 1 } }), /type \(typ\)/],
    ['a critical header', (i) => i.token({}, { crit: ['strange'], strange: 1 }), /crit/],
    ['the claim typ of Keycloak’s ID tokens', (i) => i.token({ typ: 'ID' }), /not Bearer/],
    ['a proof of possession', (i) => i.token({ cnf: { jkt: 'x' } }), /cnf/],
    ['too many characters', (i) => i.token({ more: 'x'.repeat(8000) }), /8192 characters/],
    ['no signature', () => new UnsecuredJWT({ iss: trust().issuer }).encode() + 'AA', /algorithm \(alg\)/],
    ['no JSON', () => 'a.b.c', 'the token is not a JWT'],
    [
      // The attacker signs with the public key as if it were a shared secret.
      'HS256 with the public key',
      async (i) => {
        const key = await importJWK(i.keys[0]!.jwk, 'ES256', { extractable: true });
        const secret = new TextEncoder().encode(await exportSPKI(key as CryptoKey));
        return new SignJWT({ iss: i.url, aud: 'baton', sub: 'ada', exp: now() + 60 })
          .setProtectedHeader({ alg: 'HS256', kid: 'k1' })
          .sign(secret);
      },
      /algorithm \(alg\)/,
    ],
  ])('are refused with %s', async (_, make, reason) => {
    expect(await refusal(make(issuer))).toMatch(reason);
    // The reason stands in a header.
    expect(await refusal(make(issuer))).toMatch(/^[\w ():;,.-]+$/);
    expect(await service.verify(await issuer.token())).toMatchObject({ tenantId: 'acme' });
  });

  it('are good half a minute before their time, because clocks differ', async () => {
    await service.verify(await issuer.token({ nbf: now() + 20 }));
  });

  it('have the agents and the limit that the issuer gives to each of its users', async () => {
    rows = [trust({ agents: ['desk'], requestsPerSecond: 7 })];
    expect(await service.verify(await issuer.token())).toMatchObject({
      agents: { slugs: ['desk'], ids: [] },
      requestsPerSecond: 7,
    });
  });

  it('select one tenant by their audience', async () => {
    rows = [trust(), trust({ id: 'i2', tenantId: 'other', audience: 'other' })];
    expect(await service.verify(await issuer.token())).toMatchObject({ tenantId: 'acme' });
    expect(await service.verify(await issuer.token({ aud: ['x', 'other'] }))).toMatchObject({
      tenantId: 'other',
    });
    expect(await refusal(issuer.token({ aud: ['other', 'baton'] }))).toMatch(/several tenants/);
  });

  it('select one tenant by a claim', async () => {
    const selector = (value: string) => ({ selector: { claim: 'org', value } });
    rows = [trust(selector('o1')), trust({ id: 'i2', tenantId: 'other', ...selector('o2') })];
    expect(await service.verify(await issuer.token({ org: 'o1' }))).toMatchObject({ tenantId: 'acme' });
    expect(await service.verify(await issuer.token({ org: ['o2'] }))).toMatchObject({ tenantId: 'other' });
    expect(await refusal(issuer.token())).toMatch(/no tenant/);
    expect(await refusal(issuer.token({ org: 'o3' }))).toMatch(/no tenant/);
    expect(await refusal(issuer.token({ org: ['o1', 'o2'] }))).toMatch(/several tenants/);
  });

  it('of unknown issuers ask the database once for each, and no server', async () => {
    for (let i = 0; i < 3; i++) await refusal(issuer.token({ iss: 'https://evil.example' }));
    expect(lookups).toEqual(['https://evil.example']);
    expect(issuer.asked).toEqual([]);
  });

  it('are refused from the moment on at which their issuer is removed', async () => {
    const token = await issuer.token();
    await service.verify(token);
    const callers = [
      await service.verify(token),
      { tenantId: 'acme', principal: { kind: 'token', key: 't' }, scopes: [] } as const,
    ];
    expect(await service.refused(callers)).toEqual(new Map());
    rows = [];
    await control.publishControl({ type: 'issuers-changed', tenantId: 'acme', issuer: issuer.url });
    expect(await refusal(token)).toBe(UNTRUSTED);
    expect(await service.refused(callers)).toEqual(new Map([[callers[0], 'untrusted']]));
    rows = [trust({ scopes: ['admin'] })];
    await control.publishControl({ type: 'issuers-changed', tenantId: 'acme', issuer: issuer.url });
    expect(await service.verify(token)).toMatchObject({ scopes: ['admin'] });
    // The process that has changed it does not wait for the notification.
    rows = [];
    service.forget(issuer.url);
    expect(await refusal(token)).toBe(UNTRUSTED);
  });

  it('cannot be judged while the keys of the issuer cannot be read', async () => {
    issuer.pages['https://keys.example.com/jwks'] = () => new Response('', { status: 500 });
    const token = await issuer.token();
    for (let i = 0; i < 3; i++) {
      await expect(service.verify(token)).rejects.toMatchObject({ kind: 'unavailable' });
    }
    expect(issuer.asked).toHaveLength(2);
    // A text that is no JWT is refused without a request to the issuer.
    expect(await refusal('a.b.c')).toBe('the token is not a JWT');
  });

  it('are refused for a tenant that may not call the issuer, and for no other', async () => {
    rows = [trust(), trust({ id: 'i2', tenantId: 'other', audience: 'other' })];
    lists.acme = { allow: [], deny: ['id.example.com'] };
    const unavailable = { kind: 'unavailable' };
    await expect(service.verify(await issuer.token())).rejects.toMatchObject(unavailable);
    expect(issuer.asked).toEqual([]);
    expect(await service.verify(await issuer.token({ aud: 'other' }))).toMatchObject({ tenantId: 'other' });
    // The keys that the other tenant has got are not its own, also where the discovery document leads elsewhere.
    lists.acme = { allow: ['id.example.com'], deny: [] };
    await expect(service.verify(await issuer.token())).rejects.toMatchObject(unavailable);
    lists.acme = { allow: ['*.example.com'], deny: [] };
    expect(await service.verify(await issuer.token())).toMatchObject({ tenantId: 'acme' });
    // Whatever a token says it is for, its signature decides.
    const forged = new FakeIssuer(issuer.url);
    await forged.addKey('k1');
    expect(await refusal(forged.token({ aud: 'other' }))).toBe(UNTRUSTED);
  });

  it('have a form of their own', async () => {
    expect(isJwt(await issuer.token())).toBe(true);
    for (const other of [`baton_${'x'.repeat(43)}`, 'a.b', 'a.b.c.d.e', 'a..c', 'a.b.', '']) {
      expect(isJwt(other)).toBe(false);
    }
  });
});
