import type { LimitName, LimitOverrides } from '@baton/config';
import type { Tenant, TenantExport, TenantImport, TenantUsage } from '@baton/database';
import type { DeletedTenant, LimitsInForce, Suspended, TenantChange } from '@baton/tasks';
import type { Writable } from 'node:stream';

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
