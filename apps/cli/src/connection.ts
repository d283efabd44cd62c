import {
  type Environment,
  type EnvironmentSource,
  loadEnvironment,
  loadLocalEnvironment,
} from '@baton/config';
import {
  AgentCatalogStore,
  AgentStore,
  CatalogClient,
  Database,
  HostStore,
  SecretStore,
  TenantStore,
  TokenStore,
} from '@baton/database';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { OperatorError } from './operator-error.js';
import { readStateFile } from './state-file.js';

/** What the operators' commands work with. */
export interface Platform {
  environment: Environment;
  tenants: TenantStore;
  tokens: TokenStore;
  agents: AgentStore;
  entries: AgentCatalogStore;
  hosts: HostStore;
  secrets: SecretStore;
}

/** Do `work` on the platform that `source` describes, and close every connection after it. */
export async function withPlatform<T>(
  source: EnvironmentSource,
  work: (platform: Platform) => Promise<T>,
): Promise<T> {
  const environment = findEnvironment(source);
  const catalog = new CatalogClient(environment.databaseUrl);
  try {
    return await work({
      environment,
      tenants: new TenantStore(catalog),
      tokens: new TokenStore(catalog),
      agents: new AgentStore(catalog),
      entries: new AgentCatalogStore(catalog),
      hosts: new HostStore(catalog),
      secrets: new SecretStore(catalog),
    });
  } finally {
    await catalog.close();
  }
}

/** Like `withPlatform`, with a connection for the tables of tasks. */
export async function withDatabase<T>(
  source: EnvironmentSource,
  work: (platform: Platform & { database: Database }) => Promise<T>,
): Promise<T> {
  return withPlatform(source, async (platform) => {
    const { databaseUrl: url, allowRlsBypass } = platform.environment;
    const database = new Database({ url, poolSize: 2, allowRlsBypass });
    try {
      return await work({ ...platform, database });
    } finally {
      await database.close();
    }
  });
}

/**
 * The environment of the platform: DATABASE_URL, or else the services of the `npm start` that runs in this
 * folder (`<BATON_HOME>/runtime.json`). Throws EnvironmentError or OperatorError.
 */
export function findEnvironment(source: EnvironmentSource): Environment {
  const local = loadLocalEnvironment(source);
  const running = readStateFile(join(local.home, 'runtime.json'));
  const databaseUrl = local.databaseUrl ?? textOf(running?.databaseUrl);
  if (databaseUrl === undefined) {
    throw new OperatorError(
      'No database is known: set DATABASE_URL, or start Baton with `npm start` in this folder.',
    );
  }
  // The processes of `npm start` talk over a Redis of their own, whoever runs their database.
  const ownRedisUrl = databaseUrl === running?.databaseUrl ? textOf(running.redisUrl) : undefined;
  return loadEnvironment({
    ...source,
    DATABASE_URL: databaseUrl,
    REDIS_URL: local.redisUrl ?? ownRedisUrl,
    ...ownMasterKey(source, local.home, databaseUrl === running?.databaseUrl),
  });
}

/** The key that `npm start` has made for its platform, where no other is given. */
function ownMasterKey(source: EnvironmentSource, home: string, isOwn: boolean): EnvironmentSource {
  const file = join(home, 'master-key');
  if (!isOwn || source.BATON_MASTER_KEY?.trim() || !existsSync(file)) return {};
  return { BATON_MASTER_KEY: readFileSync(file, 'utf8').trim() };
}

const textOf = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined);
