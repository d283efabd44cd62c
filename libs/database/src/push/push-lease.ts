import { setTimeout as delay } from 'node:timers/promises';
import type { Database, Statement, Values } from '../connection/database.js';

export const NOW = 'clock_timestamp()';
/** Host and port of a URL, as in the column. */
export const hostOf = (url: string): string =>
  `coalesce(lower(substring(${url}, '^[^:/?#]+://([^/?#]*)')), '')`;

/** Which configs a statement is about: of the tenant $1, that of the task $2 with the id $3, or all of the webhook $2. */
export const ONE_CONFIG = 'tenant_id = $1 AND task_id = $2 AND id = $3';
export const OF_WEBHOOK = 'tenant_id = $1 AND webhook_id = $2';

/** A config that is being deleted stays, hidden from callers, until the request under way has ended. */
export const IS_THERE = `state <> 'removed'`;

/**
 * Takes the lease from the worker that delivers. It may have a request under way and begins no other. Its later reports do
 * not count. The lease has no owner from then on; it ends when the worker gives it back, or at its time.
 */
export const REVOKE = `lease_count = CASE WHEN p.lease_owner IS NULL THEN p.lease_count ELSE p.lease_count + 1 END,
  lease_owner = NULL`;

/** Deletes removed configs without a request under way. @returns rows as long as there are revoked leases */
const purge = (name: string, which: string): Statement => ({
  name,
  text: `
WITH gone AS (
  DELETE FROM push_configs WHERE ${which} AND NOT (${IS_THERE}) AND (lease_until IS NULL OR lease_until <= ${NOW})
)
SELECT FROM push_configs WHERE ${which} AND lease_owner IS NULL AND lease_until > ${NOW} LIMIT 1`,
});
const PURGE_ONE = purge('push-purge', ONE_CONFIG);
const PURGE_OF_WEBHOOK = purge('push-purge-webhook', OF_WEBHOOK);

/** How often to check whether the requests under way have ended. */
const PURGE_MS = 25;

/**
 * Resolves when no request is under way whose lease was revoked. The lease of a worker that has died ends by itself.
 * @param key tenant, task and id of a config, or tenant and webhook
 */
export async function untilRequestsEnd(
  database: Database,
  key:
    | readonly [tenantId: string, taskId: string, id: string]
    | readonly [tenantId: string, webhookId: string],
): Promise<void> {
  const statement = key.length === 3 ? PURGE_ONE : PURGE_OF_WEBHOOK;
  const values: Values = [...key];
  while ((await database.tenantQuery(key[0], statement, values)).length > 0) await delay(PURGE_MS);
}
