import type { Redis } from 'ioredis';

/** Whether the server has answered, with an error. */
export const isReply = (error: unknown): error is Error =>
  error instanceof Error && error.name === 'ReplyError';

/**
 * The server's error for the first command that it refuses, of one of each kind that the queue and the signals need. Undefined: it refuses
 * none, or is away.
 * @param key is written for a second, and is the name of a channel as well
 */
export async function refusedCommand(redis: Redis, key: string, isSharded: boolean): Promise<unknown> {
  const outcomes = await Promise.allSettled([
    redis.set(key, '1', 'PX', 1_000),
    redis.eval('return 1', 1, key),
    isSharded ? redis.spublish(key, '') : redis.publish(key, ''),
    // A consumer of BullMQ reads the version with it, and does not begin without.
    redis.info('server'),
  ]);
  return outcomes
    .map((outcome) => (outcome.status === 'rejected' ? (outcome.reason as unknown) : undefined))
    .find(isReply);
}
