import type { LimitName, LimitOverrides } from '@baton/config';
import type { Tenant, TenantExport, TenantImport, TenantUsage } from '@baton/database';
import type { DeletedTenant, LimitsInForce, Suspended, TenantChange } from '@baton/tasks';
import type { Writable } from 'node:stream';
import type { Cli } from '../cli.js';
import { findAdminTarget, type OperatorOptions } from './admin-target.js';

/** What operators do with tenants: over the API of a management port, or on the database. */
export interface TenantOperations {
  create(slug: string): Promise<Tenant>;
  list(): Promise<Tenant[]>;
  find(slug: string): Promise<Tenant>;
  change(slug: string, change: TenantChange): Promise<Tenant>;
  limits(slug: string): Promise<LimitsInForce>;
  changeLimits(slug: string, values: LimitOverrides, defaults: readonly LimitName[]): Promise<LimitsInForce>;
  usage(slug: string): Promise<TenantUsage>;
  suspend(slug: string, options: { reason?: string; stop: boolean }): Promise<Suspended>;
  resume(slug: string): Promise<Tenant>;
  delete(slug: string, report: (table: string, rows: number) => void): Promise<DeletedTenant>;
  export(slug: string, out: Writable, options: { skipRunning: boolean }): Promise<TenantExport>;
  import(slug: string, input: AsyncIterable<Uint8Array>): Promise<TenantImport>;
}

/** Do `work` on the tenants of the platform that the options name. */
export async function withTenants<T>(
  cli: Cli,
  options: OperatorOptions,
  work: (tenants: TenantOperations) => Promise<T>,
): Promise<T> {
  const target = findAdminTarget(cli, options);
  if (target) {
    const { RemoteTenants } = await import('./remote-tenants.js');
    return work(new RemoteTenants(target));
  }
  // Loaded only here: the other commands start faster without the use cases.
  const { withDatabaseTenants } = await import('./database-tenants.js');
  return withDatabaseTenants(cli, work);
}
