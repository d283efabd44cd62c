import { SCOPES } from '@baton/a2a';
import type { Environment } from '@baton/config';
import { CatalogClient, TenantStore, TokenStore, PLATFORM_ACTOR } from '@baton/database';
import { TokenService } from '@baton/identity';
import { createMessaging } from '@baton/messaging';
import { Logger } from '@baton/telemetry';
import type { Demo, Home } from './home.js';

const SLUG = 'demo';
/** Postgres and Redis have just answered on this machine. */
const MESSAGING_MS = 5000;

/**
 * The tenant `demo`, with the limits of any tenant, and its token with all scopes. The first start makes both and keeps the token in
 * `demo.json`. A token that is no longer valid is replaced. Rejects if the database or the messaging of `environment` cannot be reached.
 */
export async function prepareDemo(environment: Environment, home: Home): Promise<Demo> {
  const catalog = new CatalogClient(environment.databaseDirectUrl, {
    systemKey: environment.databaseSystemKey,
  });
  const log = Logger.silent();
  const { databaseDirectUrl: databaseUrl, redisUrl } = environment;
  const messaging = createMessaging({ databaseUrl, redisUrl, log });
  try {
    await messaging.start(MESSAGING_MS);
    const tenants = new TenantStore(catalog);
    const tenant = (await tenants.bySlug(SLUG)) ?? (await tenants.create(SLUG, PLATFORM_ACTOR));
    const tokens = new TokenService(new TokenStore(catalog, environment), messaging, log, environment);
    const token = (await keptToken(tokens, home, tenant.id)) ?? (await newToken(tokens, tenant.id));
    const { modelUrl } = home.readDemo() ?? {};
    const demo = { url: environment.publicUrl, tenant: SLUG, token, ...(modelUrl && { modelUrl }) };
    home.writeDemo(demo);
    return demo;
  } finally {
    await Promise.all([messaging.close(), catalog.close()]);
  }
}

async function keptToken(tokens: TokenService, home: Home, tenantId: string): Promise<string | undefined> {
  const token = home.readDemo()?.token;
  if (token === undefined) return undefined;
  const verification = await tokens.verify(token);
  if (!verification.ok || verification.caller.tenantId !== tenantId) return undefined;
  // An earlier release made the token with fewer scopes.
  const { scopes } = verification.caller;
  return SCOPES.every((scope) => scopes.includes(scope)) ? token : undefined;
}

async function newToken(tokens: TokenService, tenantId: string): Promise<string> {
  const { secret } = await tokens.issue(
    {
      tenantId,
      name: 'npm start',
      scopes: [...SCOPES],
      expiresAt: null,
    },
    PLATFORM_ACTOR,
  );
  return secret;
}
