import type { TenantSchemas } from '@baton/contract';
import type { Command } from 'commander';
import { answerOf, listAll, type ServerOptions, tenantApi } from '../api.js';
import { type Cli, JSON_OPTION } from '../cli.js';
import { formatTime, printTable, printValue } from '../output.js';
import { TOKEN_OPTION, URL_OPTION } from '../server.js';

const TITLES = ['id', 'server', 'whose', 'signed in at', 'granted', 'state', 'expires', 'since', 'by'];

/** `baton connections …`: the sign-ins of a tenant at servers that its agents call. */
export function addConnectionCommands(program: Command, cli: Cli): void {
  const connections = program
    .command('connections')
    .description('sign-ins (OAuth) at tool servers and remote agents that agents call');
  const command = (name: string): Command =>
    connections
      .command(name)
      .option(...URL_OPTION)
      .option(...TOKEN_OPTION)
      .option(...JSON_OPTION);

  command('sign-in')
    .description('begin a sign-in for the whole tenant: prints a link to open in a browser')
    .argument('<agent>', 'the agent with oauth in its settings')
    .option('--server <name>', 'which of its servers (default: the only one)')
    .action((agent: string, options: ServerOptions & { server?: string }) => signIn(cli, agent, options));

  command('list')
    .description('list the sign-ins: server, whose they are, authorization server, scopes, state and expiry')
    .action((options: ServerOptions) => list(cli, options));

  command('sign-out')
    .description('sign out: revokes the tokens at the authorization server, and deletes them')
    .argument('<id>', 'its id')
    .action((id: string, options: ServerOptions) => signOut(cli, id, options));
}

async function signIn(
  cli: Cli,
  agent: string,
  { server, ...options }: ServerOptions & { server?: string },
): Promise<void> {
  const body = { agent, ...(server !== undefined && { server }) };
  const link = await answerOf(tenantApi(cli, options).POST('/v1/connections', { body }));
  if (options.json) return void printValue(cli.terminal, link);
  cli.terminal.out(`Open this link in a browser until ${formatTime(new Date(link.expires_at))}:`);
  cli.terminal.out(link.url);
}

async function list(cli: Cli, options: ServerOptions): Promise<void> {
  const api = tenantApi(cli, options);
  const all = await listAll(
    (query) => api.GET('/v1/connections', { params: { query } }),
    ({ connections }) => connections,
  );
  const none = 'No sign-ins yet: npx baton connections sign-in <agent>';
  if (options.json) printValue(cli.terminal, all);
  else printTable(cli.terminal, TITLES, all.map(rowOf), none);
}

async function signOut(cli: Cli, id: string, options: ServerOptions): Promise<void> {
  const params = { path: { id } };
  await answerOf(tenantApi(cli, options).DELETE('/v1/connections/{id}', { params }));
  if (options.json) printValue(cli.terminal, { id, removed: true });
  else cli.terminal.out(`Connection ${id} is signed out.`);
}

const rowOf = (connection: TenantSchemas['Connection']): string[] => {
  const {
    id,
    resource,
    caller,
    issuer,
    scope,
    state,
    reason,
    created_at: since,
    created_by: by,
  } = connection;
  return [
    id,
    resource,
    caller ?? 'all',
    issuer,
    scope ?? '-',
    reason === null ? state : `${state}: ${reason}`,
    expiryOf(connection),
    formatTime(new Date(since)),
    by,
  ];
};

/** How long a sign-in is valid. */
function expiryOf({ state, refreshable, expires_at: expiresAt }: TenantSchemas['Connection']): string {
  if (state === 'ended') return '-';
  if (refreshable) return 'refreshed by itself';
  return expiresAt === null ? 'unknown' : formatTime(new Date(expiresAt));
}
