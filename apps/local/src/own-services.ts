import type { LocalEnvironment } from '@baton/config';
import { basename } from 'node:path';
import type { Home } from './home.js';
import { findRedisBinary, startPostgres, startRedis } from './services/index.js';
import type { Supervised } from './supervisor.js';

/** Postgres writes a checkpoint before it ends, which takes long on a slow disk. */
const STOP_MS = 20_000;
const LOOK = 'See its log, beside its data.';

/** A service that `npm start` may run itself. */
export interface Service {
  /** Undefined until the service has started. */
  url(): string | undefined;
  /** URL with the role that owns the tables, if there is one. */
  ownerUrl?(): string | undefined;
  /** One line for the person at the terminal. */
  note: string;
  /** What to do when it does not answer. */
  remedy: string;
  /** How to run it; empty if it runs elsewhere. */
  supervised: Supervised[];
}

/** The Postgres of DATABASE_URL, or one of our own. */
export function postgresService({ databaseUrl, migrateDatabaseUrl }: LocalEnvironment, home: Home): Service {
  if (databaseUrl !== undefined) {
    return {
      url: () => databaseUrl,
      ownerUrl: () => migrateDatabaseUrl,
      note: 'Postgres: the one of DATABASE_URL.',
      remedy: 'Start it or fix DATABASE_URL; without DATABASE_URL an embedded one is used.',
      supervised: [],
    };
  }
  let url: string | undefined;
  let ownerUrl: string | undefined;
  return {
    url: () => url,
    ownerUrl: () => ownerUrl,
    note: `Postgres: embedded, its data in ${home.shown('postgres')}.`,
    remedy: LOOK,
    supervised: [
      {
        title: 'Postgres',
        stopTimeoutMs: STOP_MS,
        start: async () => {
          const running = await startPostgres(home.file('postgres'), {
            separateOwner: true,
            ...(url !== undefined && { at: url }),
          });
          ({ url, ownerUrl } = running);
          return running.process;
        },
      },
    ],
  };
}

/** The Redis of REDIS_URL, or one of our own if there is a program for it, or none. */
export function redisService({ redisUrl }: LocalEnvironment, home: Home): Service {
  if (redisUrl !== undefined) {
    return {
      url: () => redisUrl,
      note: 'Messaging: the Redis of REDIS_URL.',
      remedy: 'Start it or fix REDIS_URL; without REDIS_URL a private one or Postgres is used.',
      supervised: [],
    };
  }
  const binary = findRedisBinary();
  if (binary === undefined) {
    return {
      url: () => undefined,
      note:
        'Messaging: Postgres, because there is neither REDIS_URL nor redis-server or valkey-server on PATH. All ' +
        'features work. Install Redis for more tasks per second, as in production.',
      remedy: LOOK,
      supervised: [],
    };
  }
  let url: string | undefined;
  return {
    url: () => url,
    note: `Messaging: a private ${basename(binary)}, its data in ${home.shown('redis')}.`,
    remedy: LOOK,
    supervised: [
      {
        title: 'Redis',
        stopTimeoutMs: STOP_MS,
        start: async () => {
          const running = await startRedis(binary, home.file('redis'), url === undefined ? {} : { at: url });
          url = running.url;
          return running.process;
        },
      },
    ],
  };
}
