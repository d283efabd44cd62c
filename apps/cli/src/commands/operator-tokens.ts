import type { OperatorSchemas } from '@baton/contract';
import type { Command } from 'commander';
import { answerOf } from '../api.js';
import { type Cli, JSON_OPTION, type JsonOption } from '../cli.js';
import { NotFoundError } from '../not-found-error.js';
import {
  type OperatorOptions,
  refusalOf,
  withOperatorApi,
  withOperatorOptions,
} from '../operator/operator-api.js';
import { printed } from '../operator/printed.js';
import { formatTime, printValue, printTable } from '../output.js';
import { choice } from '../options.js';
import { parseExpiry } from './tokens.js';

const TITLES = ['prefix', 'name', 'role', 'expires', 'state', 'created', 'id'];

type OperatorToken = OperatorSchemas['OperatorToken'];

interface CreateOperatorTokenOptions extends JsonOption {
  name: string;
  role: OperatorToken['role'];
  expires?: string;
}

/** `baton operator-tokens …`: tokens for the API of operators. */
export function addOperatorTokenCommands(program: Command, cli: Cli): void {
  const { terminal } = cli;
  const tokens = program
    .command('operator-tokens')
    .description('tokens for the API of operators on the management port');

  tokens
    .command('create')
    .description('create a token for operators, in the database; its secret is shown only once')
    .option('--name <name>', 'who uses it', 'operator')
    .option('--expires <when>', '30d, 12h, 45m, or the last valid day, such as 2026-12-31 (default: never)')
    .addOption(
      choice(
        '--role <role>',
        'what it may do: read everything, support tenants without seeing contents, or all',
        ['read', 'support', 'full'] satisfies OperatorToken['role'][],
        'full',
      ),
    )
    .option(...JSON_OPTION)
    .action((options: CreateOperatorTokenOptions) => create(cli, options));

  withOperatorOptions(tokens.command('list'))
    .description('list the tokens, newest first')
    .action(async (options: OperatorOptions) => {
      const { operator_tokens: all } = await withOperatorApi(cli, options, (api) =>
        answerOf(api.GET('/v1/admin/operator-tokens')),
      );
      const none = 'No operator tokens yet: npx baton operator-tokens create';
      if (options.json) printValue(terminal, all.map(recordOf));
      else printTable(terminal, TITLES, all.map(rowOf), none);
    });

  withOperatorOptions(tokens.command('revoke'))
    .description('revoke a token permanently')
    .argument('<token>', 'id or prefix of the token')
    .action(async (token: string, options: OperatorOptions) => {
      const revoked = await withOperatorApi(cli, options, (api) =>
        answerOf(api.DELETE('/v1/admin/operator-tokens/{token}', { params: { path: { token } } })),
      ).catch((error: unknown) => {
        if (refusalOf(error)?.status !== 404) throw error;
        throw new NotFoundError(
          'There is no such token: npx baton operator-tokens list shows ids and prefixes.',
        );
      });
      if (options.json) printValue(terminal, recordOf(revoked));
      else printTable(terminal, TITLES, [rowOf(revoked)], '');
    });
}

async function create(cli: Cli, { name, role, expires, json }: CreateOperatorTokenOptions): Promise<void> {
  // Loaded only here: the other commands need no database.
  const { createOperatorToken } = await import('../operator/create-operator-token.js');
  const expiresAt = expires === undefined ? null : parseExpiry(expires, new Date());
  const { secret, token } = await createOperatorToken(cli, name, expiresAt, role);
  if (json) return void printValue(cli.terminal, { token: secret, ...token, state: 'active' });
  cli.terminal.out(secret);
  cli.terminal.err('This is the only time the token is shown: keep it safe now.');
}

function stateOf({ revoked_at: revoked, expires_at: end }: OperatorToken): 'revoked' | 'expired' | 'active' {
  if (revoked !== null) return 'revoked';
  return end !== null && new Date(end) <= new Date() ? 'expired' : 'active';
}

const recordOf = (token: OperatorToken) => ({ ...printed(token), state: stateOf(token) });

const rowOf = (token: OperatorToken): string[] => [
  token.prefix,
  token.name,
  token.role,
  formatTime(token.expires_at === null ? null : new Date(token.expires_at)),
  stateOf(token),
  formatTime(new Date(token.created_at)),
  token.id,
];
