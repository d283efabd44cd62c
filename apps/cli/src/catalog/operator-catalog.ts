import { ComputePool } from '@baton/compute';
import type { Tenant } from '@baton/database';
import { Catalog } from '@baton/tasks';
import { Logger } from '@baton/telemetry';
import { UNTOLD } from '../announce.js';
import type { Cli } from '../cli.js';
import { withPlatform } from '../connection.js';
import { withMessaging } from '../messaging.js';
import { requireTenant } from '../require-tenant.js';

/** Do `work` on the agents of a tenant as the operator does, in the database. Every process is told. */
export function asOperator<T>(
  { source, terminal }: Cli,
  slug: string,
  work: (catalog: Catalog, tenant: Tenant) => Promise<T>,
): Promise<T> {
  return withPlatform(source, async ({ environment, tenants, agents, entries }) => {
    const tenant = await requireTenant(tenants, slug);
    return withMessaging(environment, async (messaging, answers) => {
      const pool = new ComputePool({
        threads: environment.computeThreads,
        timeoutMs: environment.computeTimeoutMs,
      });
      try {
        const catalog = new Catalog(entries, agents, tenants, messaging, Logger.silent(), pool);
        const done = await work(catalog, tenant);
        if (!answers) terminal.err(UNTOLD);
        return done;
      } finally {
        await pool.close();
      }
    });
  });
}
