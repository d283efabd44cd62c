import { TENANT_SCOPES } from '../../libs/a2a/src/rights.js';
import { createHash, randomBytes, randomUUID } from 'node:crypto';
import { Client } from 'pg';

/** A new tenant of a test. Written into the database: the command line, which has its own tests, takes a second. */
export async function insertTenant(databaseUrl: string, slug: string): Promise<void> {
  await asSystem(databaseUrl, 'INSERT INTO tenants (id, slug) VALUES ($1, $2)', [randomUUID(), slug]);
}

/**
 * A new token of a tenant: its secret. It may do everything a tenant may, unless scopes are given.
 * @param expiresAt default: never
 */
export async function insertToken(
  databaseUrl: string,
  slug: string,
  scopes: readonly string[] = [],
  expiresAt?: Date,
): Promise<string> {
  const secret = `baton_${randomBytes(32).toString('base64url')}`;
  const hash = createHash('sha256').update(secret).digest('hex');
  await asSystem(
    databaseUrl,
    `INSERT INTO api_tokens (tenant_id, id, name, hash, prefix, scopes, expires_at)
     SELECT id, $2, 'test', $3, $4, $5, $6 FROM tenants WHERE slug = $1`,
    [slug, randomUUID(), hash, secret.slice(0, 12), scopes.length > 0 ? scopes : TENANT_SCOPES, expiresAt],
  );
  return secret;
}

/** Runs a statement that row security does not bind to one tenant. */
export async function asSystem(databaseUrl: string, text: string, values: unknown[] = []): Promise<void> {
  const client = new Client({ connectionString: databaseUrl });
  await client.connect();
  try {
    await client.query(`SET baton.tenant = 'system'`);
    await client.query(text, values);
  } finally {
    await client.end();
  }
}
