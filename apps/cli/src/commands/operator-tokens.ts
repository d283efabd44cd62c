import {
  type AuditAction,
  AuditStore,
  CatalogClient,
  OPERATOR_ACTOR,
  type OperatorToken,
  OperatorTokenStore,
  PLATFORM,
} from '@baton/database';
import { OperatorTokens } from '@baton/identity';
import type { Command } from 'commander';
import { type Cli, JSON_OPTION, type JsonOption } from '../cli.js';
import { NotFoundError } from '../not-found-error.js';
import { formatTime, printValue, printTable } from '../output.js';
import { findEnvironment, withDatabase } from '../platform.js';
import { parseExpiry } from './tokens.js';

const TITLES = ['prefix', 'name', 'expires', 'state', 'created', 'id'];

interface CreateOptions extends JsonOption {
  name: string;
  expires?: string;
}

/** `baton operator-tokens …`: tokens for the API of operators. They need the database: nobody grants them to itself. */
export function addOperatorTokenCommands(program: Command, cli: Cli): void {
  const { terminal } = cli;
  const tokens = program
    .command('operator-tokens')
    .description('tokens for the API of operators on the management port');

  tokens
    .command('create')
    .description('create a token for everything that operators may do; its secret is shown only once')
    .option('--name <name>', 'who uses it', 'operator')
    .option('--expires <when>', '30d, 12h, 45m, or the last valid day, such as 2026-12-31 (default: never)')
    .option(...JSON_OPTION)
    .action(async ({ name, expires, json }: CreateOptions) => {
      const expiresAt = expires === undefined ? null : parseExpiry(expires, new Date());
      const { secret, token } = await withStore(cli, (store) =>
        new OperatorTokens(store).issue(name, expiresAt),
      );
      await record(cli, 'operator-token.create', token);
      if (json) return void printValue(terminal, { token: secret, ...recordOf(token) });
      terminal.out(secret);
      terminal.err('This is the only time the token is shown: keep it safe now.');
    });

  tokens
    .command('list')
    .description('list the tokens, newest first')
    .option(...JSON_OPTION)
    .action(async ({ json }: JsonOption) => {
      const all = await withStore(cli, (store) => store.list());
      const none = 'No operator tokens yet: npx baton operator-tokens create';
      if (json) printValue(terminal, all.map(recordOf));
      else printTable(terminal, TITLES, all.map(rowOf), none);
    });

  tokens
    .command('revoke')
    .description('revoke a token for good')
    .argument('<token>', 'id or prefix of the token')
    .option(...JSON_OPTION)
    .action(async (idOrPrefix: string, { json }: JsonOption) => {
      const token = await withStore(cli, (store) => store.revoke(idOrPrefix));
      if (!token) {
        throw new NotFoundError(
          'There is no such token: npx baton operator-tokens list shows ids and prefixes.',
        );
      }
      await record(cli, 'operator-token.revoke', token);
      if (json) printValue(terminal, recordOf(token));
      else printTable(terminal, TITLES, [rowOf(token)], '');
    });
}

async function withStore<T>({ source }: Cli, work: (store: OperatorTokenStore) => Promise<T>): Promise<T> {
  const { databaseDirectUrl: databaseUrl, databaseSystemKey: systemKey } = findEnvironment(source);
  const catalog = new CatalogClient(databaseUrl, { systemKey });
  try {
    return await work(new OperatorTokenStore(catalog));
  } finally {
    await catalog.close();
  }
}

/** It belongs to no tenant: the record is the platform's. */
async function record({ source }: Cli, action: AuditAction, { id, name }: OperatorToken): Promise<void> {
  const target = { kind: 'token', name: id } as const;
  await withDatabase(source, ({ database }) =>
    new AuditStore(database).write(PLATFORM, { action, target, by: OPERATOR_ACTOR, detail: { name } }),
  );
}

function stateOf({ revokedAt, expiresAt }: OperatorToken): 'revoked' | 'expired' | 'active' {
  if (revokedAt) return 'revoked';
  return expiresAt && expiresAt <= new Date() ? 'expired' : 'active';
}

const recordOf = (token: OperatorToken) => ({ ...token, state: stateOf(token) });

const rowOf = (token: OperatorToken): string[] => [
  token.prefix,
  token.name,
  formatTime(token.expiresAt),
  stateOf(token),
  formatTime(token.createdAt),
  token.id,
];
