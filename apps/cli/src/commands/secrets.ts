import { defaultOrigins, MODEL_PROVIDER_NAMES } from '@baton/a2a';
import type { OperatorSchemas, TenantSchemas } from '@baton/contract';
import type { Command } from 'commander';
import { readFileSync } from 'node:fs';
import { answerOf, listAll, type ServerOptions, tenantApi } from '../api.js';
import { type Cli, JSON_OPTION, type JsonOption } from '../cli.js';
import { NotFoundError } from '../not-found-error.js';
import { OperatorError } from '../operator-error.js';
import { formatTime, printValue, printTable } from '../output.js';
import { inOwnWords, type OperatorApi, refusalOf, withOperatorApi } from '../operator/operator-api.js';
import { printed } from '../operator/printed.js';
import { TOKEN_OPTION, URL_OPTION } from '../server.js';

/** Providers whose keys have a usual receiver. */
const PROVIDERS = MODEL_PROVIDER_NAMES.filter((name) => defaultOrigins(name).length > 0).join(', ');
const TITLES = ['name', 'key', 'created', 'updated', 'may be sent to'];

type TenantSecretOptions = ServerOptions & { tenant: string };

/** With `--tenant` the operator's way; else a tenant's, over HTTP with its token. */
type SecretOptions = ServerOptions & { tenant?: string };

interface SecretSource {
  file?: string;
  origin?: string[];
}

/** `baton secrets …`: a tenant's secrets, encrypted with the master key. */
export function addSecretCommands(program: Command, cli: Cli): void {
  const secrets = program
    .command('secrets')
    .description('secrets of a tenant, encrypted with BATON_MASTER_KEY; values are never shown');
  const command = (name: string): Command =>
    secrets
      .command(name)
      .option('--tenant <slug>', 'as the operator: tenant of the secrets')
      .option(...URL_OPTION)
      .option(...TOKEN_OPTION)
      .option(...JSON_OPTION);

  command('set')
    .description('set a secret; the value comes from standard input or a file')
    .argument('<name>', 'name: letters, digits, dots, hyphens, underscores')
    .option('--file <path>', 'read the value from this file (default: standard input)')
    .option(
      '--origin <origin...>',
      `what may receive it: https://api.example.com, stdio:<command>, agent:<slug> (default: the provider's for ${PROVIDERS}; else nothing)`,
    )
    .action((name: string, { tenant, ...options }: SecretOptions & SecretSource) =>
      tenant === undefined ? setOwnSecret(cli, name, options) : setSecret(cli, name, { tenant, ...options }),
    );

  command('list')
    .description('list the secrets: name, key id, dates and receivers')
    .action(({ tenant, ...options }: SecretOptions) =>
      tenant === undefined ? listOwnSecrets(cli, options) : listSecrets(cli, { tenant, ...options }),
    );

  command('origins')
    .description('set the receivers of a secret; replaces earlier ones')
    .argument('<name>', 'its name')
    .argument(
      '[origin...]',
      'https://api.example.com, stdio:<command>, agent:<slug>; none = nothing may receive it',
    )
    .action((name: string, origins: string[], { tenant, ...options }: SecretOptions) =>
      tenant === undefined
        ? setOwnOrigins(cli, name, origins, options)
        : setOrigins(cli, name, origins, { tenant, ...options }),
    );

  command('remove')
    .description('remove a secret permanently')
    .argument('<name>', 'its name')
    .action((name: string, { tenant, ...options }: SecretOptions) =>
      tenant === undefined
        ? removeOwnSecret(cli, name, options)
        : removeSecret(cli, name, { tenant, ...options }),
    );

  secrets
    .command('rotate')
    .description(
      'as the operator: encrypt all secrets again with the newest key; then you can remove the earlier keys',
    )
    .option('--key-lost', 'the key of the database is lost: take the newest key in its place')
    .option(...JSON_OPTION)
    .action(async (options: JsonOption & { keyLost?: boolean }) => {
      // Loaded only here: the other commands need no database.
      const { rotateSecrets } = await import('../rotate-secrets.js');
      await rotateSecrets(cli, options);
    });
}

type TenantSecret = OperatorSchemas['TenantSecret'];

/** Do `work` over the API of operators. Says that a secret is not there in the words of the command. */
function asOperator<T>(
  cli: Cli,
  { tenant, ...options }: TenantSecretOptions,
  name: string,
  work: (api: OperatorApi) => Promise<T>,
): Promise<T> {
  return withOperatorApi(cli, options, work).catch((error: unknown) => {
    if (refusalOf(error)?.reason.startsWith('Secret not found') === true) throw noSuchSecret(tenant, name);
    return inOwnWords(error);
  });
}

async function setSecret(
  cli: Cli,
  name: string,
  { file, origin, ...options }: SecretSource & TenantSecretOptions,
): Promise<void> {
  const { tenant, json } = options;
  const value = await readValue(cli, file);
  const params = { path: { tenant, name } };
  const body = { value, origins: origin };
  const secret = await asOperator(cli, options, name, (api) =>
    answerOf(api.PUT('/v1/admin/tenants/{tenant}/secrets/{name}', { params, body })),
  );
  if (json) return void printValue(cli.terminal, recordOf(secret));
  cli.terminal.out(`Secret ${name} of ${tenant} is set, encrypted with the key ${secret.key_id}.`);
  warnOfOrigins(cli, secret, ` --tenant ${tenant}`);
}

async function setOrigins(
  cli: Cli,
  name: string,
  origins: string[],
  options: TenantSecretOptions,
): Promise<void> {
  const { tenant, json } = options;
  const params = { path: { tenant, name } };
  const secret = await asOperator(cli, options, name, (api) =>
    answerOf(api.PATCH('/v1/admin/tenants/{tenant}/secrets/{name}', { params, body: { origins } })),
  );
  if (json) printValue(cli.terminal, recordOf(secret));
  else cli.terminal.out(`Secret ${name} of ${tenant} may be sent to: ${originsText(secret.origins)}.`);
}

/** A secret as data, in the order of its members. */
const recordOf = ({ name, key_id: keyId, origins, ...times }: TenantSecret) => ({
  name,
  keyId,
  origins,
  ...printed(times),
});

/** Tells who sets a secret that nothing, or anything, may receive it. */
function warnOfOrigins(
  { terminal }: Cli,
  { name, origins }: Pick<Secret, 'name' | 'origins'>,
  target: string,
): void {
  const remedy = `npx baton secrets origins ${name} https://…${target}`;
  if (origins === null)
    terminal.err(`Agents may send it anywhere, as before this release. Set what may receive it: ${remedy}`);
  else if (origins.length === 0) terminal.err(`No agent can use it yet. Set what may receive it: ${remedy}`);
}

const originsText = (origins: readonly string[] | null): string =>
  origins === null ? 'anywhere (not set)' : origins.join(', ') || 'nothing';

const noSuchSecret = (tenant: string, name: string): OperatorError =>
  new NotFoundError(
    `Tenant "${tenant}" has no secret "${name}": npx baton secrets list --tenant ${tenant} shows its secrets.`,
  );

async function listSecrets(cli: Cli, options: TenantSecretOptions): Promise<void> {
  const { tenant, json } = options;
  const all = await asOperator(cli, options, '', (api) =>
    listAll(
      (query) => api.GET('/v1/admin/tenants/{tenant}/secrets', { params: { path: { tenant }, query } }),
      ({ secrets }) => secrets,
    ),
  );
  const none = `No secrets yet: npx baton secrets set <name> --tenant ${tenant} < file`;
  if (json) printValue(cli.terminal, all.map(recordOf));
  else printTable(cli.terminal, TITLES, all.map(rowOf), none);
}

async function removeSecret(cli: Cli, name: string, options: TenantSecretOptions): Promise<void> {
  const { tenant, json } = options;
  const params = { path: { tenant, name } };
  await asOperator(cli, options, name, (api) =>
    answerOf(api.DELETE('/v1/admin/tenants/{tenant}/secrets/{name}', { params })),
  );
  if (json) printValue(cli.terminal, { name, removed: true });
  else cli.terminal.out(`Secret ${name} of ${tenant} is removed.`);
}

const rowOf = ({ name, key_id: keyId, created_at: created, updated_at: updated, origins }: TenantSecret) => [
  name,
  keyId,
  formatTime(new Date(created)),
  formatTime(new Date(updated)),
  originsText(origins),
];

const OWN_TITLES = ['name', 'created', 'updated', 'may be sent to'];

type Secret = TenantSchemas['Secret'];

/** Set a secret of the token's tenant. */
export async function setOwnSecret(
  cli: Cli,
  name: string,
  { file, origin, ...options }: ServerOptions & SecretSource,
): Promise<void> {
  const value = await readValue(cli, file);
  const params = { path: { name } };
  const body = { value, origins: origin };
  const secret = await answerOf(tenantApi(cli, options).PUT('/v1/secrets/{name}', { params, body }));
  if (options.json) return void printValue(cli.terminal, secret);
  cli.terminal.out(`Secret ${name} is set.`);
  warnOfOrigins(cli, secret, '');
}

/** Set what may receive a secret of the token's tenant. */
async function setOwnOrigins(
  cli: Cli,
  name: string,
  origins: string[],
  options: ServerOptions,
): Promise<void> {
  const params = { path: { name } };
  const body = { origins };
  const secret = await answerOf(tenantApi(cli, options).PATCH('/v1/secrets/{name}', { params, body }));
  if (options.json) printValue(cli.terminal, secret);
  else cli.terminal.out(`Secret ${name} may be sent to: ${originsText(secret.origins)}.`);
}

/** The names of the secrets of the token's tenant. */
export async function listOwnSecrets(cli: Cli, options: ServerOptions): Promise<void> {
  const api = tenantApi(cli, options);
  const all = await listAll(
    (query) => api.GET('/v1/secrets', { params: { query } }),
    ({ secrets }) => secrets,
  );
  const rows = all.map(({ name, origins, created_at: created, updated_at: updated }) => [
    name,
    formatTime(new Date(created)),
    formatTime(new Date(updated)),
    originsText(origins),
  ]);
  if (options.json) printValue(cli.terminal, all);
  else printTable(cli.terminal, OWN_TITLES, rows, 'No secrets yet: npx baton secrets set <name> < file');
}

/** Remove a secret of the token's tenant. */
export async function removeOwnSecret(cli: Cli, name: string, options: ServerOptions): Promise<void> {
  await answerOf(tenantApi(cli, options).DELETE('/v1/secrets/{name}', { params: { path: { name } } }));
  if (options.json) printValue(cli.terminal, { name, removed: true });
  else cli.terminal.out(`Secret ${name} is removed.`);
}

/**
 * The value of a secret, from a file or from standard input. One line break at its end is left out: editors and `echo`
 * put it there. Throws OperatorError if there is none to be read.
 *
 * Never an argument: every user of the machine can read those, and they stay in the history of the shell.
 */
export async function readValue({ stdin }: Pick<Cli, 'stdin'>, file: string | undefined): Promise<string> {
  const text = file === undefined ? await readInput(stdin) : readText(file);
  return text.replace(/\r?\n$/, '');
}

async function readInput(stdin: Cli['stdin']): Promise<string> {
  const input = stdin();
  if (input.isTTY) {
    throw new OperatorError(
      'The value comes from standard input or a file, so that it stays hidden: use `… < file`, a pipe, or --file <path>.',
    );
  }
  const chunks: Buffer[] = [];
  for await (const chunk of input) chunks.push(Buffer.from(chunk));
  return Buffer.concat(chunks).toString('utf8');
}

function readText(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new OperatorError(`${file} cannot be read (${code ?? 'unknown reason'}): name another file.`);
  }
}
