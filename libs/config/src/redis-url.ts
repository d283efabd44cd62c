/** Where Redis is and how to sign in, as REDIS_URL says it (docs/operating/redis.md). */
export interface RedisAddress {
  host: string;
  port: number;
  db: number;
  /** 4, 6, or 0 for both. */
  family: number;
  username?: string;
  password?: string;
  /** Files in PEM. Set if the URL begins with `rediss:`. */
  tls?: { cacert?: string; cert?: string; key?: string };
}

const REMEDY =
  'set it to a Redis URL such as redis://host:6379, or leave it out to use Postgres for messaging';

const PARAMETERS = ['cacert', 'cert', 'key', 'db', 'family'] as const;

/** Reads REDIS_URL. Throws an Error that says what to set instead, without any value of the URL. */
export function parseRedisUrl(text: string): RedisAddress {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (!url || !['redis:', 'rediss:'].includes(url.protocol)) throw new Error(REMEDY);
  const parameters = new Map(url.searchParams);
  const known = new Set<string>(PARAMETERS);
  if ([...parameters.keys()].some((name) => !known.has(name))) {
    throw new Error(`set it to a Redis URL with no other parameters than ${PARAMETERS.join(', ')}`);
  }
  const [cacert, cert, key] = ['cacert', 'cert', 'key'].map((name) => parameters.get(name) || undefined);
  const isTls = url.protocol === 'rediss:';
  if (!isTls && (cacert ?? cert ?? key) !== undefined) {
    throw new Error('let it begin with rediss://: cacert, cert and key are for TLS');
  }
  if ((cert === undefined) !== (key === undefined)) {
    throw new Error('give it both cert and key, or neither');
  }
  const family = Number(parameters.get('family') ?? 0);
  if (![0, 4, 6].includes(family)) throw new Error('set its parameter family to 4 or 6');
  const db = Number(url.pathname.slice(1) || (parameters.get('db') ?? 0));
  if (!Number.isSafeInteger(db) || db < 0)
    throw new Error('let it end with the number of a database, such as /0');
  const [username, password] = [url.username, url.password].map(decoded);
  return {
    host: url.hostname.replace(/^\[|\]$/g, '') || '127.0.0.1',
    port: Number(url.port || 6379),
    db,
    family,
    ...(username && { username }),
    ...(password && { password }),
    ...(isTls && { tls: { ...(cacert && { cacert }), ...(cert && key && { cert, key }) } }),
  };
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
