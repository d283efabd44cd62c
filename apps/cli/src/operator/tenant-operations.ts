import type { LimitName, LimitOverrides } from '@baton/config';
import type { Tenant, TenantExport, TenantImport, TenantUsage } from '@baton/database';
import type { DeletedTenant, LimitsInForce, Suspended, TenantChange } from '@baton/tasks';
import type { Writable } from 'node:stream';
import { type Cli, OperatorError } from '../cli.js';
import { isHttpUrl } from '../server.js';

/** What operators do with tenants: over the API of a management port, or on the database. */
export interface TenantOperations {
  create(slug: string): Promise<Tenant>;
  list(): Promise<Tenant[]>;
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

/** Options of every command that can use the API of operators. */
export interface OperatorOptions {
  url?: string;
  token?: string;
}

export const ADMIN_URL_OPTION = [
  '--url <url>',
  'URL of a management port (default: BATON_ADMIN_URL, or else the database)',
] as const;
export const OPERATOR_TOKEN_OPTION = [
  '--token <token>',
  'token of an operator, for --url (default: BATON_OPERATOR_TOKEN)',
] as const;

/** The management port that the options or the environment name; undefined = work on the database. */
export function findAdminTarget(
  { source }: Pick<Cli, 'source'>,
  options: OperatorOptions,
): { url: string; token: string } | undefined {
  const url = options.url ?? source.BATON_ADMIN_URL?.trim();
  if (!url) return undefined;
  if (!isHttpUrl(url)) {
    throw new OperatorError(
      `--url: "${url}" is not an http(s) URL: give that of a management port, such as http://localhost:9090.`,
    );
  }
  const token = options.token ?? source.BATON_OPERATOR_TOKEN?.trim();
  if (token) return { url, token };
  throw new OperatorError(
    `There is no token for ${url}: give --token or BATON_OPERATOR_TOKEN, from npx baton operator-tokens create.`,
  );
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
