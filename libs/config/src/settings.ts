import { isIP } from 'node:net';
import { z } from 'zod';

/** A whole number within limits, as text. */
function integer(min: number, max: number) {
  const remedy = `set it to a whole number from ${min} to ${max}`;
  return z
    .string({ error: remedy })
    .regex(/^\d{1,15}$/, { error: remedy })
    .transform(Number)
    .refine((value) => value >= min && value <= max, { error: remedy });
}

const port = () => integer(0, 65_535);
const milliseconds = () => integer(1, 86_400_000);

const flag = () =>
  z.enum(['true', 'false'], { error: 'set it to true or false' }).transform((value) => value === 'true');

/** A limit of every tenant for whom the operator has set no other; not set = no limit. */
const limit = () => integer(1, 999_999_999_999_999).optional();

/** The same where there is a limit unless the operator says `none` for a tenant. */
const limitOf = (preset: number) => integer(1, 999_999_999_999_999).prefault(preset.toString());

const HOST = /^(\[[0-9a-f:.]+\]|[\w-]+(\.[\w-]+)*\.?)(:\d{1,5})?$/i;

/** `10.0.0.0/8`, `fd00::/8`, an address, or a host name; the last two perhaps with a port. */
function isDestination(entry: string): boolean {
  const [address = '', bits, ...rest] = entry.split('/');
  if (bits === undefined) return isIP(entry) !== 0 || HOST.test(entry);
  const most = { 0: -1, 4: 32, 6: 128 }[isIP(address)] ?? -1;
  return rest.length === 0 && /^\d{1,3}$/.test(bits) && Number(bits) <= most;
}

/** Networks and hosts, with commas between. */
const destinations = z
  .string()
  .prefault('')
  .transform((text) => text.split(',').map((entry) => entry.trim()))
  .transform((entries) => entries.filter(Boolean))
  .refine((entries) => entries.every(isDestination), {
    error: 'set it to networks and hosts with commas between them, such as 10.0.0.0/8, ollama:11434',
  });

/** Days, fractions allowed. */
const days = () => {
  const remedy = 'set it to a number of days, such as 30 or 0.5';
  return z
    .string({ error: remedy })
    .regex(/^\d{1,5}(\.\d{1,6})?$/, { error: remedy })
    .transform(Number)
    .refine((value) => value > 0, { error: remedy });
};

/** Command lines with commas between them, each as its words. */
const commandLines = z.string().transform((text) =>
  text
    .split(',')
    .map((line) => line.trim().split(/\s+/))
    .filter(([word]) => word !== ''),
);

/** A URL with one of these schemes. The remedy shows an example, never the value. */
function url(schemes: readonly string[], remedy: string) {
  const matches = (value: string) => URL.canParse(value) && schemes.includes(new URL(value).protocol);
  return z.string({ error: remedy }).refine(matches, { error: remedy });
}

/** Standard base64 (44 characters) of exactly 32 bytes. */
const masterKey = z
  .string()
  .regex(/^[A-Za-z0-9+/]{43}=$/, {
    error: 'set it to the base64 of 32 random bytes, e.g. from `openssl rand -base64 32`',
  })
  .transform((text) => Buffer.from(text, 'base64'));

/** Several of them, with commas between. */
const masterKeys = z
  .string()
  .regex(/^ *[A-Za-z0-9+/]{43}=( *, *[A-Za-z0-9+/]{43}=)*[ ,]*$/, {
    error: 'set it to earlier values of BATON_MASTER_KEY, with commas between them',
  })
  .transform((text) => text.split(',').map((key) => key.trim()))
  .transform((keys) => keys.filter(Boolean).map((key) => Buffer.from(key, 'base64')));

function isPrivateJwk(text: string): boolean {
  try {
    const jwk: unknown = JSON.parse(text);
    return typeof jwk === 'object' && jwk !== null && 'kty' in jwk && 'd' in jwk;
  } catch {
    return false;
  }
}

/** PEM (PKCS8; `\n` may be written out, as env files often do) or a private JWK in JSON. */
const signingKey = z
  .string()
  .transform((text) => text.trim().replaceAll('\\n', '\n'))
  .refine((text) => text.startsWith('-----BEGIN PRIVATE KEY-----') || isPrivateJwk(text), {
    error: 'set it to a private key in PEM (PKCS8) or JWK form',
  });

const LOG_LEVELS = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'] as const;

/** Every key of the environment that the api, worker, migrate and cli processes read. */
export const settings = z.object({
  DATABASE_URL: url(
    ['postgres:', 'postgresql:'],
    'set it to a Postgres URL such as postgres://user:password@host:5432/baton',
  ),
  ALLOW_RLS_BYPASS: flag().prefault('false'),
  REDIS_URL: url(
    ['redis:', 'rediss:'],
    'set it to a Redis URL such as redis://host:6379, or leave it out to use Postgres for messaging',
  ).optional(),
  PORT: port().prefault('8080'),
  HOST: z.string().prefault('0.0.0.0'),
  PUBLIC_URL: url(['http:', 'https:'], 'set it to the http(s) URL that callers use')
    .transform((value) => value.replace(/\/+$/, ''))
    .optional(),
  LOG_LEVEL: z.enum(LOG_LEVELS, { error: `set it to one of ${LOG_LEVELS.join(', ')}` }).prefault('info'),
  BATON_AGENTS_DIR: z.string().optional(),
  BATON_MASTER_KEY: masterKey.optional(),
  BATON_MASTER_KEY_PREVIOUS: masterKeys.optional(),
  CARD_SIGNING_KEY: signingKey.optional(),
  OUTBOUND_ALLOW: destinations,
  DATABASE_POOL_SIZE: integer(2, 1000).prefault('16'),
  WORKER_PORT: port().optional(),
  WORKER_CONCURRENCY: integer(1, 10_000).prefault('100'),
  WORKER_GRACE_MS: milliseconds().prefault('10000'),
  API_GRACE_MS: milliseconds().prefault('5000'),
  LEASE_MS: milliseconds().prefault('3000'),
  LEASE_HEARTBEAT_MS: milliseconds().prefault('750'),
  LOOP_STALL_MS: milliseconds().optional(),
  COMPUTE_THREADS: integer(2, 64).prefault('2'),
  COMPUTE_TIMEOUT_MS: integer(10, 60_000).prefault('2000'),
  SWEEP_MS: milliseconds().prefault('400'),
  MAX_ATTEMPTS: integer(1, 100).prefault('3'),
  ORPHAN_MS: milliseconds().prefault('3000'),
  DELEGATION_DEPTH: integer(1, 100).prefault('5'),
  DELEGATION_TASKS: integer(1, 10_000).prefault('50'),
  INDEX_MODEL: z.string().optional(),
  INDEX_MODEL_URL: url(
    ['http:', 'https:'],
    'set it to the http(s) URL of the model of INDEX_MODEL',
  ).optional(),
  SEND_WAIT_MS: milliseconds().prefault('30000'),
  SSE_HEARTBEAT_MS: milliseconds().prefault('15000'),
  SSE_BUFFER_BYTES: integer(1024, 1_073_741_824).prefault('1048576'),
  SSE_STALL_MS: milliseconds().prefault('30000'),
  HEADERS_TIMEOUT_MS: milliseconds().prefault('20000'),
  REQUEST_TIMEOUT_MS: milliseconds().prefault('120000'),
  RELAY_TICK_MS: milliseconds().prefault('3000'),
  BODY_LIMIT_BYTES: integer(1024, 1_073_741_824).prefault('16777216'),
  SMALL_BODY_LIMIT_BYTES: integer(1024, 1_073_741_824).prefault('1048576'),
  TASK_READ_BYTES: integer(65_536, 268_435_456).prefault('16777216'),
  TASK_READ_TOTAL_BYTES: integer(65_536, 1_099_511_627_776).prefault('67108864'),
  MAX_EVENT_BYTES: integer(1024, 268_435_456).prefault('4194304'),
  EXECUTOR_MEMORY_MB: integer(32, 65_536).prefault('512'),
  EXECUTOR_STALL_MS: milliseconds().prefault('30000'),
  EXECUTOR_PROCESSES: integer(1, 64).prefault('1'),
  EXECUTOR_IDLE_MS: milliseconds().prefault('600000'),
  MCP_STDIO_ALLOW: commandLines.optional(),
  SCHEDULE_LATE_MS: milliseconds().prefault('60000'),
  RETENTION_SWEEP_MS: milliseconds().prefault('60000'),
  TOMBSTONE_DAYS: days().prefault('90'),
  TOKEN_CACHE_MS: milliseconds().prefault('1000'),
  LIMIT_REQUESTS_PER_SECOND: limit(),
  LIMIT_RUNS_AT_ONCE: limit(),
  LIMIT_TASKS_WAITING: limit(),
  LIMIT_OPEN_STREAMS: limit(),
  LIMIT_BODY_BYTES: limit(),
  LIMIT_STORED_BYTES: limit(),
  LIMIT_EVENT_BYTES: limitOf(8_388_608),
  LIMIT_EVENTS_PER_RUN: limitOf(200_000),
  LIMIT_BYTES_PER_RUN: limitOf(4_294_967_296),
  LIMIT_EVENTS_PER_TASK: limitOf(1_000_000),
  LIMIT_BYTES_PER_TASK: limitOf(17_179_869_184),
  LIMIT_TOKENS_PER_DAY: limit(),
  LIMIT_RETENTION_DAYS: days().optional(),
  IDEMPOTENCY_HOURS: integer(1, 8760).prefault('24'),
});

/** Keys that only `npm start` and the command line read, on a machine where Baton runs its own services. */
export const localSettings = z.object({
  BATON_HOME: z.string().prefault('.baton'),
  WORKERS: integer(1, 64).prefault('1'),
  PORT: settings.shape.PORT,
  DATABASE_URL: settings.shape.DATABASE_URL.optional(),
  REDIS_URL: settings.shape.REDIS_URL,
  BATON_MASTER_KEY: settings.shape.BATON_MASTER_KEY,
  BATON_AGENTS_DIR: settings.shape.BATON_AGENTS_DIR,
});

/** Keys that only the command line reads, as a tenant's. */
export const callerSettings = z.object({
  BATON_URL: z.string().optional(),
  BATON_TOKEN: z.string().optional(),
});

/** Keys that only docker-compose.yml reads, for its own Postgres. */
export const composeSettings = z.object({
  POSTGRES_PASSWORD: z.string().optional(),
  BATON_DATABASE_PASSWORD: z.string().optional(),
});

/** The name of every key that Baton reads anywhere; each is explained in `.env.example`. */
export const SETTING_NAMES: readonly string[] = [
  ...new Set(
    [settings, localSettings, callerSettings, composeSettings].flatMap(({ shape }) => Object.keys(shape)),
  ),
];

/** Keys whose values must never be shown: they hold a password or a key. */
export const SECRET_KEYS: ReadonlySet<string> = new Set([
  'DATABASE_URL',
  'REDIS_URL',
  'BATON_MASTER_KEY',
  'BATON_MASTER_KEY_PREVIOUS',
  'CARD_SIGNING_KEY',
]);
