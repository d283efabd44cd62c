import type { Command } from 'commander';
import { type Cli, JSON_OPTION } from '../cli.js';
import { UsageError } from '../usage-error.js';
import { unknownTenant } from '../platform.js';
import { ApiClient, isHttpUrl, type Target } from '../api-client.js';
import { RefusedError } from '../refused-error.js';

/** Options of every command that can use the API of operators. */
export interface OperatorOptions {
  url?: string;
  token?: string;
}

/** A command of operators, which works over the API of a management port as well. */
export const withOperatorOptions = (command: Command): Command =>
  command
    .option('--url <url>', 'URL of a management port (default: BATON_ADMIN_URL, or else the database)')
    .option('--token <token>', 'token of an operator, for --url (default: BATON_OPERATOR_TOKEN)')
    .option(...JSON_OPTION);

/** The management port that the options or the environment name; undefined = work on the database. */
export function findAdminTarget(
  { source }: Pick<Cli, 'source'>,
  options: OperatorOptions,
): Target | undefined {
  const url = options.url ?? source.BATON_ADMIN_URL?.trim();
  if (!url) return undefined;
  if (!isHttpUrl(url)) {
    throw new UsageError(
      `--url: "${url}" is not an http(s) URL: give that of a management port, such as http://localhost:9090.`,
    );
  }
  const token = options.token ?? source.BATON_OPERATOR_TOKEN?.trim();
  if (token) return { url, token };
  throw new UsageError(
    `There is no token for ${url}: give --token or BATON_OPERATOR_TOKEN, from npx baton operator-tokens create.`,
  );
}

/**
 * Do `work` with things of one tenant over the API of operators, if the options or the environment name a management port.
 *
 * @param work its second argument is the path of the tenant, below `/v1`
 * @returns undefined if they name none: work on the database then
 * @throws OperatorError, also if there is no such tenant
 */
export function overAdminApi<T>(
  cli: Pick<Cli, 'source'>,
  { tenant, ...options }: OperatorOptions & { tenant: string },
  work: (api: ApiClient, path: string) => Promise<T>,
): Promise<T> | undefined {
  const target = findAdminTarget(cli, options);
  if (!target) return undefined;
  const path = `admin/tenants/${encodeURIComponent(tenant)}`;
  return work(new ApiClient(target), path).catch((error: unknown) => {
    if (error instanceof RefusedError && error.reason.startsWith('There is no tenant')) unknownTenant(tenant);
    throw error;
  });
}
