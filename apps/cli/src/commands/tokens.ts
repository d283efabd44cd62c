import { type Scope, SCOPES, TENANT_SCOPES } from '@baton/a2a';
import type { ApiToken } from '@baton/database';
import { TokenService } from '@baton/identity';
import { Logger } from '@baton/telemetry';
import type { Command } from 'commander';
import { type Cli, JSON_OPTION, type JsonOption } from '../cli.js';
import { withPlatform } from '../connection.js';
import { parseExpiry } from '../duration.js';
import { withMessaging } from '../messaging.js';
import { OperatorError } from '../operator-error.js';
import { formatTime, printJson, printTable } from '../output.js';
import { requireTenant } from '../require-tenant.js';

const TITLES = ['prefix', 'name', 'scopes', 'expires (utc)', 'state', 'created (utc)', 'id'];

interface TenantOption extends JsonOption {
  tenant: string;
}

interface CreateOptions extends TenantOption {
  name: string;
  scopes: string;
  expires?: string;
}

/** `baton tokens …`: the bearer tokens of a tenant. */
export function addTokenCommands(program: Command, cli: Cli): void {
  const tokens = program.command('tokens').description("a tenant's bearer tokens");

  tokens
    .command('create')
    .description('issue a token; its secret is shown once and never again')
    .requiredOption('--tenant <slug>', 'whose token it is')
    .option('--name <name>', 'what it is for', 'cli')
    .option('--scopes <scopes>', `comma-separated: ${SCOPES.join(', ')}`, TENANT_SCOPES.join(','))
    .option(
      '--expires <when>',
      '30d, 12h, 45m, or the last day it is good for, such as 2026-12-31 (default: never)',
    )
    .option(...JSON_OPTION)
    .action((options: CreateOptions) => createToken(cli, options));

  tokens
    .command('list')
    .description('list the tokens, the newest first')
    .requiredOption('--tenant <slug>', 'whose tokens')
    .option(...JSON_OPTION)
    .action((options: TenantOption) => listTokens(cli, options));

  tokens
    .command('revoke')
    .description('revoke a token for good; every process refuses it within a second')
    .requiredOption('--tenant <slug>', 'whose token it is')
    .argument('<token>', 'its id or its prefix')
    .option(...JSON_OPTION)
    .action((idOrPrefix: string, options: TenantOption) => revokeToken(cli, idOrPrefix, options));
}

/** The scopes of a comma-separated list. Throws OperatorError that names the first unknown one. */
export function parseScopes(text: string): Scope[] {
  const names = text
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '');
  const unknown = names.find((name) => !SCOPES.includes(name as Scope));
  if (unknown !== undefined || names.length === 0) {
    const reason = unknown === undefined ? 'no scope is given' : `there is no scope "${unknown}"`;
    throw new OperatorError(`--scopes: ${reason}: choose from ${SCOPES.join(', ')}.`);
  }
  return [...new Set(names as Scope[])];
}

async function createToken({ source, terminal }: Cli, options: CreateOptions): Promise<void> {
  const { tenant, name, json } = options;
  const scopes = parseScopes(options.scopes);
  const expiresAt = options.expires === undefined ? null : parseExpiry(options.expires, new Date());
  const { secret, token } = await withPlatform(source, async ({ environment, tenants, tokens }) => {
    const { id: tenantId } = await requireTenant(tenants, tenant);
    return withMessaging(environment, (messaging) =>
      new TokenService(tokens, messaging, Logger.silent(), environment).issue({
        tenantId,
        name,
        scopes,
        expiresAt,
      }),
    );
  });
  if (json) {
    printJson(terminal, { token: secret, tenant, ...recordOf(token) });
  } else {
    terminal.out(secret);
    terminal.err('This is the only time the token is shown: keep it safe now.');
  }
}

async function listTokens({ source, terminal }: Cli, { tenant, json }: TenantOption): Promise<void> {
  const tokens = await withPlatform(source, async ({ tenants, tokens }) =>
    tokens.list((await requireTenant(tenants, tenant)).id),
  );
  const none = `No tokens yet: npx baton tokens create --tenant ${tenant}`;
  if (json) printJson(terminal, tokens.map(recordOf));
  else printTable(terminal, TITLES, tokens.map(rowOf), none);
}

async function revokeToken(
  { source, terminal }: Cli,
  idOrPrefix: string,
  options: TenantOption,
): Promise<void> {
  const { tenant, json } = options;
  await withPlatform(source, async ({ environment, tenants, tokens }) => {
    const { id: tenantId } = await requireTenant(tenants, tenant);
    await withMessaging(environment, async (messaging, answers) => {
      const service = new TokenService(tokens, messaging, Logger.silent(), environment);
      const token = await service.revoke(tenantId, idOrPrefix);
      if (!token) throw noSuchToken(tenant);
      if (json) printJson(terminal, recordOf(token));
      else printTable(terminal, TITLES, [rowOf(token)], '');
      if (!answers) terminal.err(untold(environment.tokenCacheMs));
    });
  });
}

/** What was typed is not repeated: it may be a whole secret. */
const noSuchToken = (tenant: string): OperatorError =>
  new OperatorError(
    `Tenant "${tenant}" has no such token: npx baton tokens list --tenant ${tenant} shows ids and prefixes.`,
  );

const untold = (cacheMs: number): string =>
  `The token is revoked, but messaging does not answer: processes may take it for another ${cacheMs / 1000} s.`;

function stateOf({ revokedAt, expiresAt }: ApiToken): 'revoked' | 'expired' | 'active' {
  if (revokedAt) return 'revoked';
  return expiresAt && expiresAt <= new Date() ? 'expired' : 'active';
}

const recordOf = (token: ApiToken) => ({ ...token, state: stateOf(token) });

const rowOf = (token: ApiToken): string[] => [
  token.prefix,
  token.name,
  token.scopes.join(','),
  formatTime(token.expiresAt),
  stateOf(token),
  formatTime(token.createdAt),
  token.id,
];
