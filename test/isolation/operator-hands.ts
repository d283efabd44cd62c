import { Client } from 'pg';
import type { Stack } from '../support/stack.js';

/** Rows of all tenants, or a change of them. */
export async function sql<Row extends object>({ database }: Stack, text: string): Promise<Row[]> {
  const client = new Client({ connectionString: database.url });
  await client.connect();
  try {
    await client.query(`SET baton.tenant = 'system'`);
    return (await client.query<Row>(text)).rows;
  } finally {
    await client.end();
  }
}

export async function revokeToken(stack: Stack, slug: string, token: string): Promise<void> {
  await stack.baton('tokens', 'revoke', '--tenant', slug, prefixOf(token));
}

/** No command makes a token that has expired. */
export async function expireToken(stack: Stack, token: string): Promise<void> {
  await sql(
    stack,
    `UPDATE api_tokens SET expires_at = now() - interval '1 day' WHERE prefix = '${prefixOf(token)}'`,
  );
}

/** Says of the run of a task that it used up its attempts. @returns its id */
export async function buryRun(stack: Stack, taskId: string, reason: string): Promise<string> {
  const [dead] = await sql<{ run_id: string }>(
    stack,
    `INSERT INTO dead_letters (tenant_id, run_id, task_id, agent_id, reason, attempts)
     SELECT tenant_id, id, task_id, 'echo', '${reason}', 3 FROM runs WHERE task_id = '${taskId}' RETURNING run_id`,
  );
  return dead!.run_id;
}

/** A sign-in of the tenant at a server, with tokens that no process can read. @param name a part of the URL of the server. @returns its id */
export async function makeConnection(stack: Stack, tenant: string, name: string): Promise<string> {
  const [made] = await sql<{ id: string }>(
    stack,
    `INSERT INTO oauth_connections (tenant_id, id, resource, issuer, key_id, nonce, ciphertext, created_by)
     SELECT id, gen_random_uuid(), 'https://' || gen_random_uuid() || '.example.com/${name}', 'https://as.example.com', 'k', '', '', 'token:1'
     FROM tenants WHERE slug = '${tenant}' RETURNING id`,
  );
  return made!.id;
}

/** A push config of the task that was given up. @param name its id, and part of where it calls */
export async function giveUpPush(stack: Stack, taskId: string, name: string): Promise<void> {
  await sql(
    stack,
    `INSERT INTO push_configs (tenant_id, task_id, id, url, protocol, state, delivered_sequence, head_sequence, failures, failing_since)
     SELECT tenant_id, id, '${name}', 'https://${name}.example.com/', '1.0', 'dead', 0, last_sequence, 9, now()
     FROM tasks WHERE id = '${taskId}'`,
  );
}

const prefixOf = (token: string): string => token.slice(0, 'baton_'.length + 6);
