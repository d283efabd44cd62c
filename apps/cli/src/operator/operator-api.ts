import { loadLocalEnvironment } from '@baton/config';
import type { OperatorPaths } from '@baton/contract';
import type { Command } from 'commander';
import type { Client } from 'openapi-fetch';
import { createApi, isHttpUrl } from '../api.js';
import { type Cli, JSON_OPTION, type JsonOption } from '../cli.js';
import { OperatorError } from '../operator-error.js';
import { findEnvironment, managementUrlOf, runningBaton } from '../platform.js';
import { RefusedError } from '../refused-error.js';
import { unknownTenant } from '../unknown-tenant.js';
import { UsageError } from '../usage-error.js';

/** Options of every command of operators. */
export interface OperatorOptions extends JsonOption {
  url?: string;
  token?: string;
}

/** `/v1/admin` with the token of an operator. Every call rejects with an OperatorError unless it succeeds. */
export type OperatorApi = Client<OperatorPaths>;

export const OPERATOR_URL =
  'URL of a management port (default: BATON_ADMIN_URL, or the Baton of this machine)';
export const OPERATOR_TOKEN =
  'token of an operator (default: BATON_OPERATOR_TOKEN, or on the machine of Baton a token for this command alone)';

/** Adds the options of a command of operators. */
export const withOperatorOptions = (command: Command): Command =>
  command
    .option('--url <url>', OPERATOR_URL)
    .option('--token <token>', OPERATOR_TOKEN)
    .option(...JSON_OPTION);

/**
 * Do `work` over the API of operators: that of `--url` or BATON_ADMIN_URL, else that of this machine. The API of this machine is
 * known by the `npm start` of this folder, or by MANAGEMENT_PORT beside DATABASE_URL, as in the container of the API. Without a
 * token, one is made in the database for this command alone (docs/inside/adr/0061-the-command-line-is-a-client.md).
 *
 * @throws OperatorError, also if the API refuses a call: its sentence is that of the API
 */
export async function withOperatorApi<T>(
  { source }: Pick<Cli, 'source'>,
  options: OperatorOptions,
  work: (api: OperatorApi) => Promise<T>,
): Promise<T> {
  const named = options.url ?? source.BATON_ADMIN_URL?.trim();
  const token = options.token ?? (source.BATON_OPERATOR_TOKEN?.trim() || undefined);
  const use = (url: string, secret: string): Promise<T> =>
    work(createApi<OperatorPaths>({ url, token: secret })).catch(explainTenant);
  if (named) {
    if (!isHttpUrl(named)) {
      throw new UsageError(
        `--url: "${named}" is not an http(s) URL: give that of a management port, such as http://localhost:9090.`,
      );
    }
    if (token !== undefined) return use(named, token);
    // A token of this machine is never sent to another server.
    throw new UsageError(
      `There is no token for ${named}: give --token or BATON_OPERATOR_TOKEN, from npx baton operator-tokens create.`,
    );
  }
  const url = ownManagementUrl({ source });
  if (token !== undefined) return use(url, token);
  // Loaded only here: with a token, a command needs no database.
  const { withCommandToken } = await import('./command-token.js');
  return withCommandToken(findEnvironment(source), (secret) => use(url, secret));
}

/** The management port of the Baton that runs on this machine. Throws UsageError if there is none. */
function ownManagementUrl({ source }: Pick<Cli, 'source'>): string {
  const { home, databaseUrl } = loadLocalEnvironment(source);
  const running = runningBaton(home);
  const isOwn = databaseUrl === undefined || databaseUrl === running?.databaseUrl;
  if (isOwn && running?.managementUrl !== undefined) return running.managementUrl;
  const url = databaseUrl === undefined ? undefined : managementUrlOf(findEnvironment(source));
  if (url !== undefined) return url;
  throw new UsageError(
    databaseUrl === undefined
      ? 'No server is configured: start Baton with `npm start` in this folder, or give --url and --token of a management port.'
      : 'No server is configured: set MANAGEMENT_PORT as the API process has it, or give --url and --token of a management port.',
  );
}

/** Says how to find the slug of a tenant, if that is what is wrong. */
function explainTenant(error: unknown): never {
  const [, slug] = (error instanceof RefusedError && /^There is no tenant "(.*)"$/.exec(error.reason)) || [];
  if (slug !== undefined) unknownTenant(slug);
  throw error;
}

/** The refusal of a call that could be repeated in another way; undefined for every other error. */
export const refusalOf = (error: unknown): RefusedError | undefined =>
  error instanceof RefusedError && error.status < 500 ? error : undefined;

/** For `catch`: the same refusal without the address of the server, as a sentence of its own. */
export function inOwnWords(error: unknown): never {
  const refusal = refusalOf(error);
  if (!refusal) throw error;
  const { exitCode } = refusal.options;
  throw new OperatorError(`${refusal.reason}.`, {
    cause: error,
    ...(exitCode !== undefined && { exitCode }),
  });
}
