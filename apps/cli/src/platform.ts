import {
  type Environment,
  type EnvironmentSource,
  loadEnvironment,
  type LocalEnvironment,
  loadLocalEnvironment,
} from '@baton/config';
import {
  AgentCatalogStore,
  AgentStore,
  CatalogClient,
  Database,
  HostStore,
  IssuerStore,
  SecretStore,
  type Tenant,
  TenantStore,
  TokenStore,
} from '@baton/database';
import { createMessaging, type Messaging } from '@baton/messaging';
import { Logger } from '@baton/telemetry';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { readStateFile } from './cli.js';
import { NotFoundError } from './not-found-error.js';
import { UsageError } from './usage-error.js';

/** The version of this build. */
export { releaseOf } from '@baton/database';

/** What the operators' commands work with. */
export interface Platform {
  environment: Environment;
  tenants: TenantStore;
  tokens: TokenStore;
  agents: AgentStore;
  entries: AgentCatalogStore;
  hosts: HostStore;
  issuers: IssuerStore;
  secrets: SecretStore;
}

/** Do `work` on the platform that `source` describes, and close every connection after it. */
export async function withPlatform<T>(
  source: EnvironmentSource,
  work: (platform: Platform) => Promise<T>,
): Promise<T> {
  const environment = findEnvironment(source);
  const catalog = new CatalogClient(environment.databaseDirectUrl, {
    systemKey: environment.databaseSystemKey,
  });
  try {
    return await work({
      environment,
      tenants: new TenantStore(catalog),
      tokens: new TokenStore(catalog, environment),
      agents: new AgentStore(catalog),
      entries: new AgentCatalogStore(catalog, environment),
      hosts: new HostStore(catalog),
      issuers: new IssuerStore(catalog),
      secrets: new SecretStore(catalog, environment),
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
    const { databaseDirectUrl: url, databaseSystemKey: systemKey, allowRlsBypass } = platform.environment;
    const database = new Database({ url, systemKey, poolSize: 2, allowRlsBypass });
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
    throw new UsageError(
      'No database is configured: set DATABASE_URL, or start Baton with `npm start` in this folder.',
    );
  }
  // The processes of `npm start` use their own Redis, also with an external database.
  const ownRedisUrl = databaseUrl === running?.databaseUrl ? textOf(running.redisUrl) : undefined;
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

const textOf = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined);

/** How long a command waits for messaging before it goes on without. */
export const START_MS = 3_000;

/**
 * Do `work` with messaging to the running processes, which is closed after it.
 *
 * @param work its second argument says whether messaging answers; if not, what is published is lost, and the
 * processes learn of a change only when their caches have run out
 */
export async function withMessaging<T>(
  { redisUrl, databaseDirectUrl: databaseUrl }: Environment,
  work: (messaging: Messaging, answers: boolean) => Promise<T>,
): Promise<T> {
  const messaging = createMessaging({ redisUrl, databaseUrl, log: Logger.silent() });
  const answers = await messaging.start(START_MS).then(
    () => true,
    () => false,
  );
  try {
    return await work(messaging, answers);
  } finally {
    if (answers) await messaging.close();
  }
}

export const UNTOLD =
  'Messaging does not answer: running processes notice the change within a second or two.';

/** The tenant of that slug. Throws OperatorError if there is none. */
export async function requireTenant(tenants: TenantStore, slug: string): Promise<Tenant> {
  const tenant = await tenants.bySlug(slug);
  return tenant ?? unknownTenant(slug);
}

/** Throws OperatorError. */
export function unknownTenant(slug: string): never {
  throw new NotFoundError(`There is no tenant "${slug}": npx baton tenants list shows all tenants.`);
}
