import { Redis } from 'ioredis';
import { MessagingUnavailableError } from '../../messaging-unavailable-error.js';
import { withTimeout } from '../../with-timeout.js';
import { connectionProblem } from '../../quiet-log.js';
import { isReply, refusedCommand } from './refused-command.js';
import { redisReasonOf, type RedisServer, redisServer } from './redis-server.js';

const ANSWER_MS = 5_000;

/** The state of a Redis. No value of it is a secret. */
export interface RedisFacts {
  /** Such as `127.0.0.1:6379`. */
  address: string;
  /** Such as `8.0.2`. */
  version: string;
  /** Such as `noeviction`. */
  policy: string;
  /** In bytes; `max` is 0 without a limit. */
  memory: { used: number; max: number };
  /** Whether it takes writes, scripts and signals; otherwise the reason. */
  writes: true | string;
  /** Whether its last snapshot and its append-only file were written. */
  isSaving: boolean;
  /** Clock of Redis minus that of this machine, in ms. */
  clockOffsetMs: number;
}

/** Reads from a Redis what an operator needs to repair it. It writes one key, for a second. Rejects if it does not answer. */
export async function inspectRedis(url: string): Promise<RedisFacts> {
  const server = redisServer(url, 'baton');
  const { address, options } = server;
  const redis = new Redis({
    ...options,
    lazyConnect: true,
    connectionName: 'baton-doctor',
    maxRetriesPerRequest: 0,
    connectTimeout: ANSWER_MS,
    retryStrategy: () => null,
    sentinelRetryStrategy: () => null,
    // The other checks continue, and the finding is that writes are refused.
    reconnectOnError: null,
  });
  // The error of the connection. That of the command has no reason.
  let reason: unknown;
  redis.on('error', (error: unknown) => (reason = error));
  try {
    await withTimeout(ANSWER_MS, redis.connect(), 'no answer in time');
    return { address, ...(await withTimeout(ANSWER_MS, factsOf(redis, server), 'no answer in time')) };
  } catch (error) {
    const said = reason ?? error;
    throw new MessagingUnavailableError(
      `Redis at ${address} ${isReply(said) ? 'answers' : 'does not answer'}: ${redisReasonOf(said)}`,
    );
  } finally {
    redis.disconnect();
  }
}

/** For `catch`: rejects if the server is away. */
function asReply(error: unknown): Error {
  if (isReply(error)) return error;
  throw error;
}

async function factsOf(
  redis: Redis,
  { prefix, isCluster }: RedisServer,
): Promise<Omit<RedisFacts, 'address'>> {
  const info = await redis.info();
  const field = (name: string): string => new RegExp(`^${name}:(.*?)\\r?$`, 'm').exec(info)?.[1] ?? '';
  const [seconds, micros] = (await redis.time()).map(Number);
  const name = `${prefix}:doctor`;
  const subscribe = () => (isCluster ? redis.ssubscribe(name) : redis.subscribe(name));
  // The last command: a subscriber may send no other.
  const refused =
    (await refusedCommand(redis, name, isCluster)) ?? (await subscribe().then(() => undefined, asReply));
  return {
    version: field('valkey_version') || field('redis_version'),
    policy: field('maxmemory_policy'),
    memory: { used: Number(field('used_memory')), max: Number(field('maxmemory')) },
    writes: refused === undefined ? true : connectionProblem(refused),
    isSaving: field('rdb_last_bgsave_status') !== 'err' && !field('aof_last_write_status').startsWith('err'),
    clockOffsetMs: (seconds ?? 0) * 1000 + (micros ?? 0) / 1000 - Date.now(),
  };
}
