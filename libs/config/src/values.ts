import { isIP } from 'node:net';
import { resolve } from 'node:path';
import { z } from 'zod';
import { EGRESS_PATTERN_REMEDY, parseEgressPattern } from './egress-pattern.js';
import { parseRedisUrl } from './redis-url.js';

// The kinds of values that a setting can have. Each reads text. Its error has what to set instead, and never holds the
// value, which may be a secret.

/** Any text. */
export const text = z.string();

/** A whole number from `min` to `max`. */
export function integer(min: number, max: number) {
  const remedy = `set it to a whole number from ${min} to ${max}`;
  return z
    .string({ error: remedy })
    .regex(/^\d{1,15}$/, { error: remedy })
    .transform(Number)
    .refine((value) => value >= min && value <= max, { error: remedy });
}

export const port = integer(0, 65_535);

const HOST_AND_PORT = /^(?:\[[\da-f:.]{2,45}\]|[\w.-]{1,253}):\d{1,5}$/i;

/** A name or an address, and a port. */
export const hostAndPort = z
  .string()
  .regex(HOST_AND_PORT, { error: 'set it to a name and a port, such as grpc.example.com:443' });

/** At most a day. */
export const milliseconds = integer(1, 86_400_000);

const DAYS_REMEDY = 'set it to a number of days, such as 30 or 0.5';

/** More than 0. Fractions are allowed. */
export const days = z
  .string({ error: DAYS_REMEDY })
  .regex(/^\d{1,5}(\.\d{1,6})?$/, { error: DAYS_REMEDY })
  .transform(Number)
  .refine((value) => value > 0, { error: DAYS_REMEDY });

export const flag = z
  .enum(['true', 'false'], { error: 'set it to true or false' })
  .transform((value) => value === 'true');

/** As people write it on a command line: `BATON_DEV=1`. */
export const shortFlag = z
  .enum(['true', 'false', '1', '0'], { error: 'set it to 1 or 0' })
  .transform((value) => value === 'true' || value === '1');

export const logLevel = oneOf('fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent');

function oneOf<const T extends readonly string[]>(...values: T) {
  return z.enum(values, { error: `set it to one of ${values.join(', ')}` });
}

/** A sampler of OpenTelemetry. */
export const tracesSampler = oneOf(
  'always_on',
  'always_off',
  'traceidratio',
  'parentbased_always_on',
  'parentbased_always_off',
  'parentbased_traceidratio',
);

/** Whether OpenTelemetry sends a signal. */
export const otelExporter = oneOf('otlp', 'none');

const FRACTION_REMEDY = 'set it to a number from 0 to 1, such as 0.1';

/** From 0 to 1. */
export const fraction = z
  .string({ error: FRACTION_REMEDY })
  .regex(/^(0(\.\d{1,9})?|1(\.0{1,9})?)$/, { error: FRACTION_REMEDY })
  .transform(Number);

/** Whether agents in code run in a sandbox. */
export const sandboxMode = oneOf('auto', 'required', 'off');

/** Which agents have push notifications. */
export const pushMode = oneOf('off', 'declared', 'all');

/** Which model calls are recorded: none, those that fail or whose run fails, or all. */
export const RECORD_MODES = ['none', 'failed', 'all'] as const;
export type RecordMode = (typeof RECORD_MODES)[number];
export const recordMode = oneOf(...RECORD_MODES);

/** A path, made absolute from the working folder. */
export const path = z.string().transform((value) => resolve(value));

/** `none`, which reads as null, or another kind of value. */
export function orNone<T>(value: z.ZodType<T, string>) {
  return z.string().transform((given, context): T | null => {
    if (given === 'none') return null;
    const result = value.safeParse(given);
    if (result.success) return result.data;
    for (const { message } of result.error.issues) context.addIssue({ code: 'custom', message });
    return z.NEVER;
  });
}

/** A URL with one of these schemes. */
export function url(schemes: readonly string[], remedy: string) {
  const matches = (value: string) => schemes.includes(URL.parse(value)?.protocol ?? '');
  return z.string({ error: remedy }).refine(matches, { error: remedy });
}

/** URL of Redis, with the parameters of parseRedisUrl. */
export const redisUrl = z.string().superRefine((value, context) => {
  try {
    parseRedisUrl(value);
  } catch (error) {
    context.addIssue({ code: 'custom', message: (error as Error).message });
  }
});

/** Entries with commas between them. Spaces around an entry and empty entries do not count. */
const list = z.string().transform((value) =>
  value
    .split(',')
    .map((entry) => entry.trim())
    .filter(Boolean),
);

/** Paths, made absolute from the working folder. */
export const paths = list.transform((entries) => entries.map((entry) => resolve(entry)));

/** Origins as browsers send them, or `*` alone. */
export const origins = list.refine(
  (entries) => entries.every((entry) => (entry === '*' ? entries.length === 1 : isOrigin(entry))),
  { error: 'set it to origins with commas between them, such as https://app.example.com, or to *' },
);

const isOrigin = (entry: string): boolean => /^https?:/.test(entry) && URL.parse(entry)?.origin === entry;

const HOST = /^(\[[0-9a-f:.]+\]|[\w-]+(\.[\w-]+)*\.?)(:\d{1,5})?$/i;

/** `10.0.0.0/8`, `fd00::/8`, an address, or a host name. The last two can have a port. */
function isDestination(entry: string): boolean {
  const [address = '', bits, ...rest] = entry.split('/');
  if (bits === undefined) return isIP(entry) !== 0 || HOST.test(entry);
  const maxBits = { 0: -1, 4: 32, 6: 128 }[isIP(address)] ?? -1;
  return rest.length === 0 && /^\d{1,3}$/.test(bits) && Number(bits) <= maxBits;
}

/** Networks and hosts. */
export const destinations = list.refine((entries) => entries.every(isDestination), {
  error: 'set it to networks and hosts, separated by commas, such as 10.0.0.0/8, ollama:11434',
});

/** Patterns of destinations, in their plain form. */
export const egressPatterns = list.transform((entries, context): string[] => {
  const patterns = entries.map((entry) => parseEgressPattern(entry)?.text);
  const known = patterns.filter((pattern) => pattern !== undefined);
  if (known.length < patterns.length) {
    context.addIssue({ code: 'custom', message: `with commas between them, ${EGRESS_PATTERN_REMEDY}` });
  }
  return known;
});

const NAME = /^[a-z\d_-]{1,63}(\.[a-z\d_-]{1,63})*$/;

/** Host names, in lower case. */
export const hostNames = list
  .transform((entries) => entries.map((entry) => entry.toLowerCase()))
  .refine((entries) => entries.every((entry) => entry.length <= 253 && NAME.test(entry)), {
    error: 'set it to host names without ports, separated by commas, such as baton.ops.example.com',
  });

/** Addresses and networks. */
export const networks = list.refine(
  (entries) => entries.every((entry) => isIP(entry.split('/')[0] ?? '') !== 0 && isDestination(entry)),
  { error: 'set it to addresses and networks with commas between them, such as 10.0.0.0/8, ::1' },
);

const NAME_SERVER = /^(?:\[([\da-f:]{2,45})\]|([\d.]{7,15}))(?::\d{1,5})?$/i;

/** An address, perhaps with a port. IPv6 addresses with a port are in brackets. */
function isNameServer(entry: string): boolean {
  const [, ipv6 = '', ipv4 = ''] = NAME_SERVER.exec(entry) ?? [];
  return isIP(entry) !== 0 || isIP(ipv6) === 6 || isIP(ipv4) === 4;
}

/** Addresses of name servers. */
export const nameServers = list.refine((entries) => entries.every(isNameServer), {
  error: 'set it to addresses of name servers with commas between them, such as 10.0.0.2, [fd00::2]:5353',
});

/** Command lines, each as its words. */
export const commandLines = list.transform((lines) => lines.map((line) => line.split(/\s+/)));

/** Base64 (44 characters) of exactly 32 bytes. */
const KEY = /^[A-Za-z0-9+/]{43}=$/;

const decodeKey = (key: string): Buffer => Buffer.from(key, 'base64');

/** A key of AES-256. */
export const masterKey = z
  .string()
  .regex(KEY, { error: 'set it to the base64 of 32 random bytes, e.g. from `openssl rand -base64 32`' })
  .transform(decodeKey);

/** Several of them. */
export const masterKeys = list
  .refine((keys) => keys.every((key) => KEY.test(key)), {
    error: 'set it to earlier values of BATON_MASTER_KEY, separated by commas',
  })
  .transform((keys) => keys.map(decodeKey));

/** It has the form of a master key, but Postgres gets the text as it is. */
export const systemKey = z
  .string()
  .regex(KEY, { error: 'set it to the base64 of 32 random bytes, e.g. from `openssl rand -base64 32`' });

/** What tokens of one model cost, for a million of them. */
export interface ModelPrice {
  input: number;
  output: number;
  /** Input tokens from the provider's cache; unset = as other input. */
  cached?: number | undefined;
  /** Input tokens that the provider writes into its cache; unset = as other input. */
  cacheWrite?: number | undefined;
}

const price = z.number().min(0).max(1_000_000);
const PRICES = z.record(
  z.string().regex(/^[\w-]+\/[^*\s]{0,200}\*?$/),
  z.strictObject({ input: price, output: price, cached: price.optional(), cacheWrite: price.optional() }),
);

/** Prices of models, as JSON. A name that ends with `*` stands for all models that begin so. */
export const modelPrices = z.string().transform((value, context): Readonly<Record<string, ModelPrice>> => {
  try {
    return PRICES.parse(JSON.parse(value));
  } catch {
    context.addIssue({
      code: 'custom',
      message: 'set it to JSON such as {"openai/gpt-5*":{"input":1.25,"cached":0.125,"output":10}}',
    });
    return z.NEVER;
  }
});

/** A private key: PEM (PKCS8; `\n` may be written out, as env files often do), or a JWK as JSON. */
export const signingKey = z
  .string()
  .transform((value) => value.trim().replaceAll('\\n', '\n'))
  .refine((value) => value.startsWith('-----BEGIN PRIVATE KEY-----') || isPrivateJwk(value), {
    error: 'set it to a private key in PEM (PKCS8) or JWK form',
  });

/** Keys or certificates as text. */
export const pem = z
  .string()
  .transform((value) => value.trim().replaceAll('\\n', '\n'))
  .refine((value) => value.startsWith('-----BEGIN '), { error: 'set it to PEM, or name its file' });

/** Keys whose public parts are published: PEM blocks one after another, a JWK or a JWK Set as JSON. */
export const publishedKeys = z
  .string()
  .transform((value) => value.trim().replaceAll('\\n', '\n'))
  .refine((value) => value === '' || value.startsWith('-----BEGIN ') || value.startsWith('{'), {
    error: 'set it to keys in PEM form one after another, a JWK or a JWK Set',
  });

function isPrivateJwk(value: string): boolean {
  try {
    const jwk: unknown = JSON.parse(value);
    return typeof jwk === 'object' && jwk !== null && 'kty' in jwk && 'd' in jwk;
  } catch {
    return false;
  }
}
