import type { TrustedIssuer } from '@baton/database';
import { type EgressLists, egressRefusal, type OutboundCalls, OutboundRefused } from '@baton/outbound';
import { type CryptoKey, type JWK, type JWTPayload, SignJWT, exportJWK, generateKeyPair } from 'jose';

/** A row of an issuer; change what a test is about. */
export const trust = (more: Partial<TrustedIssuer> = {}): TrustedIssuer => ({
  id: 'i1',
  tenantId: 'acme',
  issuer: 'https://id.example.com/realm',
  audience: 'baton',
  selector: null,
  jwksUrl: null,
  subjectClaim: 'sub',
  scopes: ['agents:call'],
  grants: [],
  agents: [],
  requestsPerSecond: null,
  createdAt: new Date(0),
  ...more,
});

/** An issuer in memory: its keys, its tokens, and the way to it. */
export class FakeIssuer {
  readonly keys: { kid: string; alg: string; privateKey: CryptoKey; jwk: JWK }[] = [];
  /** What it answers, by URL. */
  readonly pages: Record<string, () => Response> = {};
  /** URLs that were asked for. */
  readonly asked: string[] = [];

  constructor(readonly url = 'https://id.example.com/realm') {
    const jwksUrl = 'https://keys.example.com/jwks';
    this.pages[`${url}/.well-known/openid-configuration`] = () =>
      Response.json({ issuer: url, jwks_uri: jwksUrl });
    this.pages[jwksUrl] = () => Response.json({ keys: this.keys.map(({ jwk }) => jwk) });
  }

  static async start(): Promise<FakeIssuer> {
    const issuer = new FakeIssuer();
    await issuer.addKey('k1');
    return issuer;
  }

  async addKey(kid: string, alg = 'ES256'): Promise<void> {
    const { privateKey, publicKey } = await generateKeyPair(alg, { extractable: true });
    const jwk = { ...(await exportJWK(publicKey)), kid, alg, use: 'sig' };
    this.keys.push({ kid, alg, privateKey, jwk });
  }

  readonly outbound: Pick<OutboundCalls, 'fetchWithin'> = this.wayOf(() =>
    Promise.resolve({ allow: [], deny: [] }),
  );

  /** The way to it for a tenant with lists. */
  wayOf(lists: () => Promise<EgressLists>): Pick<OutboundCalls, 'fetchWithin'> {
    return { fetchWithin: () => async (input) => this.answer(input as string, await lists()) };
  }

  private answer(url: string, lists: EgressLists): Promise<Response> {
    const refusal = egressRefusal(lists, url);
    if (refusal !== undefined) return Promise.reject(new OutboundRefused(refusal));
    this.asked.push(url);
    const page = this.pages[url];
    return page ? Promise.resolve(page()) : Promise.reject(new TypeError('fetch failed'));
  }

  /** A token that is good for ten minutes. Undefined claims and fields of the header are left out. */
  async token(claims: JWTPayload = {}, header: Record<string, unknown> = {}): Promise<string> {
    const key = this.keys.at(-1)!;
    const seconds = Math.floor(Date.now() / 1000);
    const all = { iss: this.url, aud: 'baton', sub: 'ada', iat: seconds, exp: seconds + 600, ...claims };
    return new SignJWT(all)
      .setProtectedHeader({ alg: key.alg, kid: key.kid, typ: 'at+jwt', ...header })
      .sign(key.privateKey, { crit: { strange: true } });
  }
}
