import { resolve } from 'node:path';
import type { z } from 'zod';
import { type EnvironmentSource, processEnvironment, readSettings } from './read-settings.js';
import { localSettings } from './settings.js';

/** What `npm start` and the command line read before any service is known. */
export interface LocalEnvironment {
  /** Absolute path of the folder that holds the state of `npm start`. */
  home: string;
  /** Number of worker processes. */
  workers: number;
  port: number;
  databaseUrl: string | undefined;
  redisUrl: string | undefined;
  /** Whether BATON_MASTER_KEY is given; if not, `npm start` makes one and keeps it. */
  hasMasterKey: boolean;
  agentsDir: string | undefined;
}

/** As loadEnvironment, for the keys of a machine where Baton runs its own services. */
export function loadLocalEnvironment(source: EnvironmentSource = processEnvironment()): LocalEnvironment {
  const values: z.output<typeof localSettings> = readSettings(localSettings, source);
  return {
    home: resolve(values.BATON_HOME),
    workers: values.WORKERS,
    port: values.PORT,
    databaseUrl: values.DATABASE_URL,
    redisUrl: values.REDIS_URL,
    hasMasterKey: values.BATON_MASTER_KEY !== undefined,
    agentsDir: values.BATON_AGENTS_DIR && resolve(values.BATON_AGENTS_DIR),
  };
}
