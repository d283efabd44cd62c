import type { GivenUp } from '@baton/postgres';
import { PostgresMessaging } from './drivers/postgres/postgres-messaging.js';
import { RedisMessaging } from './drivers/redis/redis-messaging.js';
import type { Messaging } from './messaging.js';
import type { MessagingLog } from './quiet-log.js';

export interface MessagingOptions {
  /** Redis when set, otherwise everything runs on Postgres. */
  redisUrl?: string | undefined;
  databaseUrl: string;
  log: MessagingLog;
  /** Called when a connection to Postgres is given up, because it has not answered in time. */
  onGivenUp?: ((what: GivenUp) => void) | undefined;
  /** Keeps several installations on one server apart; letters, digits and `_`. */
  namespace?: string;
}

/** The messaging of a process. Call `start` before use and `close` at the end. */
export function createMessaging(options: MessagingOptions): Messaging {
  const { redisUrl, databaseUrl, log, namespace = 'baton', onGivenUp } = options;
  return redisUrl
    ? new RedisMessaging(redisUrl, log, namespace)
    : new PostgresMessaging(databaseUrl, log, namespace, onGivenUp);
}
