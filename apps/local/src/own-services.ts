import type { LocalEnvironment } from '@baton/config';
import { basename } from 'node:path';
import type { Home } from './home.js';
import { findRedisBinary, startPostgres, startRedis } from './services/index.js';
import type { Supervised } from './supervisor.js';

const STOP_MS = 20_000;

/** A service that may be ours to run. */
export interface Service {
  /** Where it is; known once it has started. */
  url(): string | undefined;
  /** One line for the person at the terminal. */
  note: string;
  /** How to run it; empty if somebody else does. */
  supervised: Supervised[];
}

/** The Postgres of DATABASE_URL, or one of our own. */
export function postgresService({ databaseUrl }: LocalEnvironment, home: Home): Service {
  if (databaseUrl !== undefined) {
    return { url: () => databaseUrl, note: 'Postgres: the one of DATABASE_URL.', supervised: [] };
  }
  let url: string | undefined;
  return {
    url: () => url,
    note: `Postgres: embedded, its data in ${home.shown('postgres')}.`,
    supervised: [
      {
        title: 'Postgres',
        stopTimeoutMs: STOP_MS,
        start: async () => {
          const running = await startPostgres(home.file('postgres'), url === undefined ? {} : { at: url });
          url = running.url;
          return running.process;
        },
      },
    ],
  };
}

/** The Redis of REDIS_URL, or one of our own if there is a program for it, or none. */
export function redisService({ redisUrl }: LocalEnvironment, home: Home): Service {
  if (redisUrl !== undefined) {
    return { url: () => redisUrl, note: 'Messaging: the Redis of REDIS_URL.', supervised: [] };
  }
  const binary = findRedisBinary();
  if (binary === undefined) {
    return {
      url: () => undefined,
      note:
        'Messaging: Postgres, for there is neither REDIS_URL nor redis-server or valkey-server on PATH. All ' +
        'features work; install Redis for more tasks per second, as in production.',
      supervised: [],
    };
  }
  let url: string | undefined;
  return {
    url: () => url,
    note: `Messaging: a private ${basename(binary)}, its data in ${home.shown('redis')}.`,
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
