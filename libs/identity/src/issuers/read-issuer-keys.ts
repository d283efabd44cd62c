import { parseBoundedJson } from '@baton/a2a';
import type { TrustedIssuer } from '@baton/database';
import type { OutboundCalls } from '@baton/outbound';
import type { JSONWebKeySet } from 'jose';
import { z } from 'zod';
import { IssuerError } from './issuer-error.js';

/** A caller waits for the keys of its issuer. */
const TIMEOUT_MS = 5_000;
/** A document of keys has some kilobytes. */
const MAX_BYTES = 256 * 1024;
/** An issuer has some keys. A token names one of them. */
const MAX_KEYS = 100;
/** Base64url characters of an RSA modulus of 8192 bits. A longer one makes each check slow. */
const MAX_MODULUS = 1366;

// Without `protocol` zod asks URL.canParse, whose answer is wrong on Node 20 for names outside of ASCII.
const discovery = z.object({ issuer: z.string(), jwks_uri: z.url({ protocol: /^https?$/ }).max(2048) });

const keySet = z.object({
  keys: z
    .array(z.looseObject({ kty: z.string(), n: z.string().optional() }))
    .max(MAX_KEYS, `must not have more than ${String(MAX_KEYS)} keys`),
});

/**
 * Reads the public keys of an issuer, at its `jwksUrl` or that of its discovery document (OpenID Connect Discovery 1.0
 * §4). Rejects with IssuerError, or as `Outbound.fetch` does.
 */
export async function readIssuerKeys(
  outbound: Pick<OutboundCalls, 'fetchWithin'>,
  { issuer, jwksUrl }: Pick<TrustedIssuer, 'issuer' | 'jwksUrl'>,
): Promise<JSONWebKeySet> {
  const fetch = outbound.fetchWithin({ maxBytes: MAX_BYTES, json: true, timeoutMs: TIMEOUT_MS });
  const read = async <T>(url: string, schema: z.ZodType<T>): Promise<T> => {
    const response = await fetch(url, { headers: { accept: 'application/json' } });
    if (response.status !== 200) {
      await response.body?.cancel();
      throw new IssuerError(`${url} answers with status ${String(response.status)}`);
    }
    const text = await response.text();
    const parsed = schema.safeParse(parseBoundedJson(text));
    if (parsed.success) return parsed.data;
    throw new IssuerError(`${url} is not what OpenID Connect describes: ${z.prettifyError(parsed.error)}`);
  };
  const { keys } = await read(jwksUrl ?? (await discoveredUrl(issuer, read)), keySet);
  return { keys: keys.filter(({ n }) => n === undefined || n.length <= MAX_MODULUS) };
}

async function discoveredUrl(
  issuer: string,
  read: (url: string, schema: typeof discovery) => Promise<z.output<typeof discovery>>,
): Promise<string> {
  const url = `${issuer.endsWith('/') ? issuer.slice(0, -1) : issuer}/.well-known/openid-configuration`;
  const document = await read(url, discovery);
  if (document.issuer !== issuer) {
    throw new IssuerError(
      `${url} is about the issuer "${document.issuer.slice(0, 256)}": use exactly this name`,
    );
  }
  if (issuer.startsWith('https:') && !document.jwks_uri.startsWith('https:')) {
    throw new IssuerError(`${url} names keys at a URL without https`);
  }
  return document.jwks_uri;
}
