import { ProtocolError } from '@baton/a2a';
import type { Cli } from '../cli.js';
import { RefusedError } from '../refused-error.js';
import { findAdminTarget, type OperatorOptions } from './admin-target.js';
import type { PlatformOperations } from './platform-operations.js';
import type { TenantOperations } from './tenant-operations.js';

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

/** Do `work` on the platform that the options name. */
export async function withOperations<T>(
  cli: Cli,
  options: OperatorOptions,
  work: (operations: PlatformOperations) => Promise<T>,
): Promise<T> {
  const target = findAdminTarget(cli, options);
  if (target) {
    const { RemoteOperations } = await import('./remote-operations.js');
    return work(new RemoteOperations(target));
  }
  // Loaded only here: the other commands start faster without the use cases.
  const { withDatabaseOperations } = await import('./database-operations.js');
  return withDatabaseOperations(cli, work);
}

const STATUS: Partial<Record<string, number>> = { 'not-found': 404, 'task-not-found': 404, conflict: 409 };

/**
 * Why the use case refuses, wherever it runs, and the status of HTTP that says so; 400 for what is not allowed. Undefined
 * for every other error.
 */
export function refusalOf(error: unknown): { status: number; reason: string } | undefined {
  if (error instanceof RefusedError) return error.status < 500 ? error : undefined;
  if (!(error instanceof ProtocolError)) return undefined;
  return { status: STATUS[error.kind] ?? 400, reason: error.message };
}
