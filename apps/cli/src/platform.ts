import {
  type Environment,
  type EnvironmentSource,
  loadEnvironment,
  type LocalEnvironment,
  loadLocalEnvironment,
  ownUrl,
} from '@baton/config';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { readStateFile } from './state-file.js';
import { UsageError } from './usage-error.js';

/** The state of a running `npm start` in `<BATON_HOME>/runtime.json`. */
export interface RunningBaton {
  databaseUrl: string;
  redisUrl: string | undefined;
  /** Unset: the API is about to start, or of an earlier release. */
  managementUrl: string | undefined;
}

/** The `npm start` that runs in this folder. Throws OperatorError if its file cannot be read. */
export function runningBaton(home: string): RunningBaton | undefined {
  const state = readStateFile(join(home, 'runtime.json'));
  const databaseUrl = textOf(state?.databaseUrl);
  if (databaseUrl === undefined) return undefined;
  return { databaseUrl, redisUrl: textOf(state?.redisUrl), managementUrl: textOf(state?.managementUrl) };
}

/**
 * The environment of the platform: DATABASE_URL, or else the services of the `npm start` that runs in this
 * folder. Throws EnvironmentError or OperatorError.
 */
export function findEnvironment(source: EnvironmentSource): Environment {
  const local = loadLocalEnvironment(source);
  const running = runningBaton(local.home);
  const databaseUrl = local.databaseUrl ?? running?.databaseUrl;
  if (databaseUrl === undefined) {
    throw new UsageError(
      'No database is configured: set DATABASE_URL, or start Baton with `npm start` in this folder.',
    );
  }
  // The processes of `npm start` use their own Redis, also with an external database.
  const ownRedisUrl = databaseUrl === running?.databaseUrl ? running.redisUrl : undefined;
  return loadEnvironment({
    ...source,
    DATABASE_URL: databaseUrl,
    REDIS_URL: local.redisUrl ?? ownRedisUrl,
    ...ownKeys(local, databaseUrl === running?.databaseUrl),
  });
}

/** The keys that `npm start` has made for its platform, where no others are given. */
function ownKeys(
  { home, hasMasterKey, databaseSystemKey }: LocalEnvironment,
  isOwn: boolean,
): EnvironmentSource {
  if (!isOwn) return {};
  const masterKey = join(home, 'master-key');
  const systemKey = join(home, 'database-system-key');
  return {
    ...(!hasMasterKey && existsSync(masterKey) && { BATON_MASTER_KEY_FILE: masterKey }),
    ...(databaseSystemKey === undefined &&
      existsSync(systemKey) && { DATABASE_SYSTEM_KEY: readFileSync(systemKey, 'utf8').trim() }),
  };
}

/** Where the API process with this environment answers operators on its own machine. Undefined: it has no such port. */
export const managementUrlOf = ({ managementHost, managementPort }: Environment): string | undefined =>
  managementPort ? ownUrl(managementHost, managementPort) : undefined;

const textOf = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined);
