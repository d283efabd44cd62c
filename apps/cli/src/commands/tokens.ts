import { type Scope, SCOPES, TENANT_SCOPES } from '@baton/a2a';
import { type ApiToken, OPERATOR_ACTOR } from '@baton/database';
import { TokenService } from '@baton/identity';
import { Logger } from '@baton/telemetry';
import type { Command } from 'commander';
import { type Cli, JSON_OPTION, type JsonOption, OperatorError } from '../cli.js';
import { formatTime, printJson, printTable } from '../output.js';
import { requireTenant, withMessaging, withPlatform } from '../platform.js';

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
  const tokens = program.command('tokens').description('bearer tokens of a tenant');

  tokens
    .command('create')
    .description('create a token; its secret is shown only once')
    .requiredOption('--tenant <slug>', 'tenant of the token')
    .option('--name <name>', 'purpose of the token', 'cli')
    .option('--scopes <scopes>', `comma-separated: ${SCOPES.join(', ')}`, TENANT_SCOPES.join(','))
    .option('--expires <when>', '30d, 12h, 45m, or the last valid day, such as 2026-12-31 (default: never)')
    .option(...JSON_OPTION)
    .action((options: CreateOptions) => createToken(cli, options));

  tokens
    .command('list')
    .description('list the tokens, newest first')
    .requiredOption('--tenant <slug>', 'tenant of the tokens')
    .option(...JSON_OPTION)
    .action((options: TenantOption) => listTokens(cli, options));

  tokens
    .command('revoke')
    .description('revoke a token for good; every process refuses it within a second')
    .requiredOption('--tenant <slug>', 'tenant of the token')
    .argument('<token>', 'id or prefix of the token')
    .option(...JSON_OPTION)
    .action((idOrPrefix: string, options: TenantOption) => revokeToken(cli, idOrPrefix, options));
}

/** The scopes of a comma-separated list. Throws OperatorError that names the first unknown one. */
export function parseScopes(text: string, option = '--scopes'): Scope[] {
  const names = text
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '');
  const unknown = names.find((name) => !SCOPES.includes(name as Scope));
  if (unknown !== undefined || names.length === 0) {
    const reason = unknown === undefined ? 'no scope is given' : `there is no scope "${unknown}"`;
    throw new OperatorError(`${option}: ${reason}: choose from ${SCOPES.join(', ')}.`);
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
      new TokenService(tokens, messaging, Logger.silent(), environment).issue(
        { tenantId, name, scopes, expiresAt },
        OPERATOR_ACTOR,
      ),
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
      const token = await service.revoke(tenantId, idOrPrefix, OPERATOR_ACTOR);
      if (!token) throw noSuchToken(tenant);
      if (json) printJson(terminal, recordOf(token));
      else printTable(terminal, TITLES, [rowOf(token)], '');
      if (!answers) terminal.err(untold(environment.tokenCacheMs));
    });
  });
}

/** The message does not repeat the argument: it may be a whole secret. */
const noSuchToken = (tenant: string): OperatorError =>
  new OperatorError(
    `Tenant "${tenant}" has no such token: npx baton tokens list --tenant ${tenant} shows ids and prefixes.`,
  );

const untold = (cacheMs: number): string =>
  `The token is revoked, but messaging does not answer: processes may accept it for another ${cacheMs / 1000} s.`;

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

const UNIT_MS = { d: 86_400_000, h: 3_600_000, m: 60_000 };
const DURATION = /^(\d{1,5})([dhm])$/;
const DAY = /^\d{4}-\d{2}-\d{2}$/;
const FORMS = 'give a duration such as 30d, 12h or 45m, or a day such as 2026-12-31';

/**
 * When a token expires: `30d`, `12h` or `45m` from `now` on, or at the end of a day (`2026-12-31`, UTC).
 * Throws OperatorError for anything else, and for a time that has passed.
 */
export function parseExpiry(text: string, now: Date): Date {
  const expiry = afterDuration(text, now) ?? endOfDay(text);
  if (!expiry) throw new OperatorError(`--expires: "${text}" is neither a duration nor a day: ${FORMS}.`);
  if (expiry <= now) throw new OperatorError(`--expires: "${text}" is not in the future: ${FORMS}.`);
  return expiry;
}

function afterDuration(text: string, now: Date): Date | undefined {
  const [, count, unit] = DURATION.exec(text) ?? [];
  return count && unit
    ? new Date(now.getTime() + Number(count) * UNIT_MS[unit as keyof typeof UNIT_MS])
    : undefined;
}

/** The last millisecond of the day. An impossible day (2026-02-30) is refused. */
function endOfDay(text: string): Date | undefined {
  if (!DAY.test(text)) return undefined;
  const end = new Date(`${text}T23:59:59.999Z`);
  return !Number.isNaN(end.getTime()) && end.toISOString().startsWith(text) ? end : undefined;
}
