/** A server. */
export interface RedisHost {
  host: string;
  port: number;
}

/** Where Redis is and how to sign in, from REDIS_URL (docs/operating/redis.md). */
export interface RedisAddress extends RedisHost {
  db: number;
  /** 4, 6, or 0 for both. */
  family: number;
  username?: string;
  password?: string;
  /** Files in PEM. Set if the URL begins with `rediss:`. */
  tls?: { cacert?: string; cert?: string; key?: string };
  /** Ask these Sentinels for the address of the primary with this name. Otherwise `host` and `port` are its own. */
  sentinel?: { name: string; hosts: RedisHost[]; username?: string; password?: string };
  /** Nodes of a Redis Cluster. */
  cluster?: RedisHost[];
}

const REMEDY =
  'set it to a Redis URL such as redis://host:6379, or leave it out to use Postgres for messaging';

const PARAMETERS = [
  'cacert',
  'cert',
  'key',
  'db',
  'family',
  'sentinel',
  'hosts',
  'sentinelUser',
  'sentinelPassword',
  'cluster',
];

/** Reads REDIS_URL. Throws an Error with what to set instead, without any value of the URL. */
export function parseRedisUrl(text: string): RedisAddress {
  const url = URL.parse(text);
  if (!url || !['redis:', 'rediss:'].includes(url.protocol)) throw new Error(REMEDY);
  const parameters = new Map(url.searchParams);
  const known = new Set<string>(PARAMETERS);
  if ([...parameters.keys()].some((name) => !known.has(name))) {
    throw new Error(`set it to a Redis URL with no other parameters than ${PARAMETERS.join(', ')}`);
  }
  const [cacert, cert, key] = ['cacert', 'cert', 'key'].map((name) => parameters.get(name) || undefined);
  const isTls = url.protocol === 'rediss:';
  if (!isTls && (cacert ?? cert ?? key) !== undefined) {
    throw new Error('begin it with rediss://: its parameters cacert, cert and key need TLS');
  }
  if ((cert === undefined) !== (key === undefined)) {
    throw new Error('set both of its parameters cert and key, or neither');
  }
  const family = Number(parameters.get('family') ?? 0);
  if (![0, 4, 6].includes(family)) throw new Error('set its parameter family to 4 or 6');
  const sentinelName = parameters.get('sentinel');
  const cluster = parameters.get('cluster') ?? 'false';
  if (!['true', 'false'].includes(cluster))
    throw new Error('set its parameter cluster to true, or leave it out');
  const isCluster = cluster === 'true';
  if (sentinelName && isCluster) throw new Error('set its parameter sentinel or cluster, not both');
  if (!sentinelName && ['sentinelUser', 'sentinelPassword'].some((name) => parameters.has(name))) {
    throw new Error('add sentinel=<name of the primary>: sentinelUser and sentinelPassword need it');
  }
  if (!sentinelName && !isCluster && parameters.has('hosts')) {
    throw new Error(
      'add cluster=true, or sentinel=<name of the primary>: its parameter hosts needs one of them',
    );
  }
  const db = Number(url.pathname.slice(1) || (parameters.get('db') ?? 0));
  if (!Number.isSafeInteger(db) || db < 0)
    throw new Error('end it with the number of a database, such as /0');
  if (isCluster && db !== 0)
    throw new Error('remove the number of the database: a Redis Cluster has only database 0');
  const [username, password] = [url.username, url.password].map(decoded);
  const first = {
    host: bare(url.hostname) || '127.0.0.1',
    port: Number(url.port || (sentinelName ? 26_379 : 6379)),
  };
  const hosts = [first, ...hostsOf(parameters.get('hosts') ?? '')];
  const [user, secret] = ['sentinelUser', 'sentinelPassword'].map((name) => parameters.get(name));
  return {
    ...first,
    db,
    family,
    ...(username && { username }),
    ...(password && { password }),
    ...(isTls && { tls: { ...(cacert && { cacert }), ...(cert && key && { cert, key }) } }),
    ...(sentinelName && {
      sentinel: {
        name: sentinelName,
        hosts,
        ...(user && { username: user }),
        ...(secret && { password: secret }),
      },
    }),
    ...(isCluster && { cluster: hosts }),
  };
}

/** Reads `one:26379,two:26379`. */
function hostsOf(list: string): RedisHost[] {
  return list
    .split(',')
    .map((entry) => entry.trim())
    .filter(Boolean)
    .map((entry) => {
      const [, host, port] = /^(\[[\da-f:.]+\]|[\w.-]+):(\d{1,5})$/i.exec(entry) ?? [];
      if (!host || !port)
        throw new Error('set its parameter hosts to names with ports, such as two:26379,three:26379');
      return { host: bare(host), port: Number(port) };
    });
}

/** An IPv6 address without its brackets. */
const bare = (host: string): string => host.replace(/^\[|\]$/g, '');

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
