import { createHash, createPrivateKey, createPublicKey, type JsonWebKey, type KeyObject } from 'node:crypto';
import { generateAgentCardSignature } from '@a2a-js/sdk';
import { AgentCard } from '../model.js';

/** A private key that signs cards or push notifications, with what its signatures say about it. */
export interface SigningKey {
  privateKey: KeyObject;
  /** The key's own `kid` if it is a JWK with one, else its RFC 7638 thumbprint. */
  kid: string;
  /** JWS algorithm, by the kind of key. */
  alg: string;
}

const KINDS = 'a signing key must be EC (P-256, P-384, P-521), Ed25519 or RSA';
const EC_ALGORITHMS: Record<string, string> = { 'P-256': 'ES256', 'P-384': 'ES384', 'P-521': 'ES512' };
/** Members of a public JWK that its thumbprint covers, sorted, by key type (RFC 7638 §3.2, RFC 8037 §2). */
const THUMBPRINT_MEMBERS: Record<string, readonly string[]> = {
  EC: ['crv', 'kty', 'x', 'y'],
  OKP: ['crv', 'kty', 'x'],
  RSA: ['e', 'kty', 'n'],
};

/** A public key as a JWK Set lists it (RFC 7517 §5). */
export interface PublishedKey extends JsonWebKey {
  kid: string;
  alg: string;
  use: 'sig';
}

/** Read a private key from PEM (PKCS#8) or JWK text. Throws an Error with a plain reason, never the key. */
export function parseSigningKey(text: string): SigningKey {
  const { privateKey, kid } = readKey(text.trim());
  const jwk = createPublicKey(privateKey).export({ format: 'jwk' });
  const alg = algorithmOf(jwk);
  if (!alg) throw new Error(KINDS);
  return { privateKey, alg, kid: kid ?? thumbprint(jwk) };
}

/** The key by which a signature is verified. It has no private part. */
export const publicKeyOf = ({ privateKey, kid, alg }: SigningKey): PublishedKey => ({
  ...createPublicKey(privateKey).export({ format: 'jwk' }),
  kid,
  alg,
  use: 'sig',
});

/**
 * The public parts of keys, private or public ones: PEM blocks one after another, a JWK, or a JWK Set. Throws an Error with a
 * plain reason, never a key.
 */
export function parsePublishedKeys(text: string): PublishedKey[] {
  return keysIn(text.trim()).map(({ key, kid }) => {
    const jwk = key.export({ format: 'jwk' });
    const alg = algorithmOf(jwk);
    if (!alg) throw new Error(KINDS);
    return { ...jwk, kid: kid ?? thumbprint(jwk), alg, use: 'sig' };
  });
}

function keysIn(text: string): { key: KeyObject; kid?: string | undefined }[] {
  try {
    if (!text.startsWith('{')) {
      const blocks = text.match(/-----BEGIN [\s\S]+?-----END [^-]+-----/g) ?? [];
      if (blocks.length === 0) throw new Error('no PEM block');
      return blocks.map((block) => ({ key: createPublicKey(block) }));
    }
    const jwk = JSON.parse(text) as JsonWebKey & { keys?: JsonWebKey[] };
    return (jwk.keys ?? [jwk]).map((key) => ({
      key: createPublicKey({ key, format: 'jwk' }),
      kid: kidOf(key),
    }));
  } catch {
    throw new Error('the keys must be PEM blocks, a JWK or a JWK Set in JSON');
  }
}

/**
 * The card with a signature (A2A 1.0 §8.4). It covers the card's JSON: canonicalizing the in-memory form
 * with SDK 1.3 silently leaves `securitySchemes` out (a2aproject/a2a-js#663), and no other SDK would agree.
 * @param jku URL of the JWK Set that has the key
 */
export async function signCard(
  card: AgentCard,
  { privateKey, kid, alg }: SigningKey,
  jku?: string,
): Promise<AgentCard> {
  const sign = generateAgentCardSignature(privateKey, { alg, kid, typ: 'JOSE', ...(jku && { jku }) });
  const { signatures } = await sign(AgentCard.toJSON({ ...card, signatures: [] }) as AgentCard);
  return { ...card, signatures };
}

function readKey(text: string): { privateKey: KeyObject; kid?: string | undefined } {
  try {
    if (!text.startsWith('{')) return { privateKey: createPrivateKey(text) };
    const key = JSON.parse(text) as JsonWebKey;
    return { privateKey: createPrivateKey({ key, format: 'jwk' }), kid: kidOf(key) };
  } catch {
    throw new Error('a signing key must be a private key as PEM (PKCS#8) or as a JWK in JSON');
  }
}

const kidOf = ({ kid }: JsonWebKey): string | undefined =>
  typeof kid === 'string' && kid !== '' ? kid : undefined;

function algorithmOf({ kty, crv }: JsonWebKey): string | undefined {
  if (kty === 'RSA') return 'RS256';
  return crv === 'Ed25519' ? 'EdDSA' : EC_ALGORITHMS[crv ?? ''];
}

function thumbprint(jwk: JsonWebKey): string {
  const members = THUMBPRINT_MEMBERS[jwk.kty ?? ''] ?? [];
  const canonical = JSON.stringify(Object.fromEntries(members.map((name) => [name, jwk[name]])));
  return createHash('sha256').update(canonical).digest('base64url');
}
