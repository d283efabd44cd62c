import { SECRET_NAME } from '@baton/a2a';
import { z } from 'zod';
import type { TurnSecrets } from '../agent-runtime.js';

/** Header names (RFC 9110, section 5.1). */
const HEADER_NAME = /^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}$/;
/** Header values: printable text on one line (RFC 9110, section 5.5). */
const HEADER_VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;
/** Headers that control the transfer. The platform sets them. */
const TRANSFER_HEADERS = new Set([
  'host',
  'connection',
  'keep-alive',
  'content-length',
  'content-type',
  'transfer-encoding',
  'te',
  'trailer',
  'upgrade',
  'expect',
  'accept-encoding',
]);

const isFree = (name: string): boolean => !TRANSFER_HEADERS.has(name.toLowerCase());

const text = z.string().max(4096).regex(HEADER_VALUE, 'must be text on one line');

/**
 * The headers of an agent's settings. A value is a text, or the name of a tenant's secret with an optional prefix:
 * `Authorization: {secret: crm, prefix: "Bearer "}`.
 */
export const secretHeaders = z.record(
  z
    .string()
    .regex(HEADER_NAME, 'is not the name of a header')
    .refine(isFree, 'is a header that the platform sets itself'),
  z.union([
    text,
    z.strictObject({
      secret: z.string().regex(SECRET_NAME, 'is not the name of a secret'),
      prefix: text.optional(),
    }),
  ]),
);

export type SecretHeaders = z.output<typeof secretHeaders>;

/**
 * Reads the secrets of headers. The result must never be shown. White space around a secret's value is removed. Throws
 * an Error with a plain reason if a secret does not exist or is no valid header value. The reason names the secret, not
 * its value.
 *
 * @param destinations every origin that will receive the headers
 */
export async function readSecretHeaders(
  secrets: TurnSecrets,
  headers: SecretHeaders,
  destinations: readonly string[],
): Promise<Record<string, string>> {
  const read = Object.entries(headers).map(async ([name, value]) => {
    if (typeof value === 'string') return [name, value] as const;
    const { secret: secretName, prefix = '' } = value;
    const found = await secrets.get(secretName, destinations);
    if (found === undefined) throw new Error(`the secret "${secretName}" of the header ${name} is not set`);
    if (!HEADER_VALUE.test(found))
      throw new Error(`the value of the secret "${secretName}" cannot be sent as the header ${name}`);
    return [name, `${prefix}${found}`] as const;
  });
  return Object.fromEntries(await Promise.all(read));
}
