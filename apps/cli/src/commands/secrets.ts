import { masterKeyIdsOf } from '@baton/config';
import { AuditStore, OPERATOR_ACTOR, PLATFORM, type SecretInfo } from '@baton/database';
import { Secrets } from '@baton/identity';
import type { Command } from 'commander';
import { readFileSync } from 'node:fs';
import { type Cli, JSON_OPTION, type JsonOption } from '../cli.js';
import { NotFoundError } from '../not-found-error.js';
import { OperatorError } from '../operator-error.js';
import { formatTime, printValue, printTable } from '../output.js';
import { overAdminApi } from '../operator/admin-target.js';
import { requireTenant, withDatabase } from '../platform.js';
import { TOKEN_OPTION, URL_OPTION } from '../server.js';
import { ApiClient, type TargetOptions } from '../api-client.js';
import { RefusedError } from '../refused-error.js';

const TITLES = ['name', 'key', 'created', 'updated', 'may be sent to'];

type TenantOption = TargetOptions & JsonOption & { tenant: string };

/** With `--tenant` the operator's way; else a tenant's, over HTTP with its token. */
type EitherOptions = TargetOptions & JsonOption & { tenant?: string };

interface SetOptions {
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
      "what may receive it: https://api.example.com, stdio:<command>, agent:<slug> (default: the provider's for openai, anthropic, google; else nothing)",
    )
    .action((name: string, { tenant, ...options }: EitherOptions & SetOptions) =>
      tenant === undefined ? setOwnSecret(cli, name, options) : setSecret(cli, name, { tenant, ...options }),
    );

  command('list')
    .description('list the secrets: name, key id, dates and receivers')
    .action(({ tenant, ...options }: EitherOptions) =>
      tenant === undefined ? listOwnSecrets(cli, options) : listSecrets(cli, { tenant, ...options }),
    );

  command('origins')
    .description('set the receivers of a secret; replaces earlier ones')
    .argument('<name>', 'its name')
    .argument(
      '[origin...]',
      'https://api.example.com, stdio:<command>, agent:<slug>; none = nothing may receive it',
    )
    .action((name: string, origins: string[], { tenant, ...options }: EitherOptions) =>
      tenant === undefined
        ? setOwnOrigins(cli, name, origins, options)
        : setOrigins(cli, name, origins, { tenant, ...options }),
    );

  command('remove')
    .description('remove a secret for good')
    .argument('<name>', 'its name')
    .action((name: string, { tenant, ...options }: EitherOptions) =>
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
    .action((options: JsonOption & { keyLost?: boolean }) => rotateSecrets(cli, options));
}

/** The secrets of a tenant, for its operator. */
interface SecretOperations {
  list(): Promise<SecretInfo[]>;
  set(name: string, value: string, origins: string[] | undefined): Promise<SecretInfo>;
  /** @returns undefined if there is no such secret */
  setOrigins(name: string, origins: string[]): Promise<SecretInfo | undefined>;
  /** @returns whether there was such a secret */
  remove(name: string): Promise<boolean>;
}

/** Do `work` with the secrets of a tenant: over the API of operators, or on the database. */
function withSecrets<T>(
  cli: Cli,
  options: TenantOption,
  work: (secrets: SecretOperations) => Promise<T>,
): Promise<T> {
  const remote = overAdminApi(cli, options, (api, path) => work(remoteSecrets(api, path)));
  return (
    remote ??
    withDatabase(cli.source, async ({ environment, secrets: store, tenants, database }) => {
      const { id } = await requireTenant(tenants, options.tenant);
      const secrets = new Secrets(store, environment);
      return work({
        list: () => secrets.list(id),
        set: async (name, value, origins) => {
          await database.assertMasterKey(masterKeyIdsOf(environment));
          return secrets.set(id, name, value, origins, OPERATOR_ACTOR);
        },
        setOrigins: (name, origins) => secrets.setOrigins(id, name, origins, OPERATOR_ACTOR),
        remove: (name) => secrets.remove(id, name, OPERATOR_ACTOR),
      });
    })
  );
}

/** A secret as the API of operators shows it. */
interface TenantSecretJson extends ShownSecret {
  key_id: string;
}

function remoteSecrets(api: ApiClient, tenant: string): SecretOperations {
  const path = (name: string): string => `${tenant}/${pathOf(name)}`;
  const orNone = (error: unknown): undefined => {
    if (error instanceof RefusedError && error.reason.startsWith('Secret not found')) return undefined;
    throw error;
  };
  return {
    list: async () => (await api.list<TenantSecretJson>(`${tenant}/secrets`, 'secrets')).map(infoOf),
    set: async (name, value, origins) =>
      infoOf(await api.call('PUT', path(name), { value, ...(origins && { origins }) })),
    setOrigins: (name, origins) =>
      api.call<TenantSecretJson>('PATCH', path(name), { origins }).then(infoOf, orNone),
    remove: async (name) => (await api.call('DELETE', path(name)).then(() => true, orNone)) ?? false,
  };
}

const infoOf = ({ name, key_id: keyId, origins, ...times }: TenantSecretJson): SecretInfo => ({
  name,
  keyId,
  origins,
  createdAt: new Date(times.created_at),
  updatedAt: new Date(times.updated_at),
});

async function setSecret(
  cli: Cli,
  name: string,
  { file, origin, ...options }: SetOptions & TenantOption,
): Promise<void> {
  const { tenant, json } = options;
  const value = await readValue(cli, file);
  const info = await withSecrets(cli, options, (secrets) => secrets.set(name, value, origin));
  if (json) return void printValue(cli.terminal, info);
  cli.terminal.out(`Secret ${name} of ${tenant} is set, encrypted with the key ${info.keyId}.`);
  warnOfOrigins(cli, info, ` --tenant ${tenant}`);
}

async function setOrigins(cli: Cli, name: string, origins: string[], options: TenantOption): Promise<void> {
  const { tenant, json } = options;
  const info = await withSecrets(cli, options, (secrets) => secrets.setOrigins(name, origins));
  if (!info) throw noSuchSecret(tenant, name);
  if (json) printValue(cli.terminal, info);
  else cli.terminal.out(`Secret ${name} of ${tenant} may be sent to: ${originsText(info.origins)}.`);
}

/** Tells who sets a secret that nothing, or anything, may receive it. */
function warnOfOrigins(
  { terminal }: Cli,
  { name, origins }: Pick<SecretInfo, 'name' | 'origins'>,
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

async function listSecrets(cli: Cli, options: TenantOption): Promise<void> {
  const { tenant, json } = options;
  const all = await withSecrets(cli, options, (secrets) => secrets.list());
  const none = `No secrets yet: npx baton secrets set <name> --tenant ${tenant} < file`;
  if (json) printValue(cli.terminal, all);
  else printTable(cli.terminal, TITLES, all.map(rowOf), none);
}

async function removeSecret(cli: Cli, name: string, options: TenantOption): Promise<void> {
  const { tenant, json } = options;
  const removed = await withSecrets(cli, options, (secrets) => secrets.remove(name));
  if (!removed) throw noSuchSecret(tenant, name);
  if (json) printValue(cli.terminal, { name, removed });
  else cli.terminal.out(`Secret ${name} of ${tenant} is removed.`);
}

async function rotateSecrets(
  { source, terminal }: Cli,
  { json, keyLost }: JsonOption & { keyLost?: boolean },
): Promise<void> {
  const rotation = await withDatabase(source, async ({ environment, secrets, database }) => {
    const keys = masterKeyIdsOf(environment);
    if (!keyLost) await database.assertMasterKey(keys);
    const done = await new Secrets(secrets, environment).rotate();
    if (keys) await database.changeMasterKey(keys);
    await new AuditStore(database).write(PLATFORM, {
      action: 'secret.rotate',
      target: { kind: 'database', name: 'secrets' },
      by: OPERATOR_ACTOR,
      detail: { keyId: done.keyId, rotated: done.rotated, failed: done.failures.length },
    });
    return done;
  });
  const { keyId, rotated, failures } = rotation;
  if (json) printValue(terminal, rotation);
  else terminal.out(`${rotated} secrets were encrypted again; the key in use is ${keyId}.`);
  if (failures.length > 0) {
    throw new OperatorError(
      [
        ...failures,
        keyLost
          ? `The key of this database is now ${keyId}. Set these secrets again.`
          : 'Keep the earlier keys in BATON_MASTER_KEY_PREVIOUS until a rotation ends without this warning.',
      ].join('\n'),
    );
  }
  if (!json) terminal.err('No secret needs an earlier key: BATON_MASTER_KEY_PREVIOUS can be emptied.');
}

const rowOf = ({ name, keyId, createdAt, updatedAt, origins }: SecretInfo): string[] => [
  name,
  keyId,
  formatTime(createdAt),
  formatTime(updatedAt),
  originsText(origins),
];

const OWN_TITLES = ['name', 'created', 'updated', 'may be sent to'];

type Options = TargetOptions & JsonOption;

/** A secret as the server shows it. */
interface ShownSecret {
  name: string;
  origins: string[] | null;
  created_at: string;
  updated_at: string;
}

const pathOf = (name: string): string => `secrets/${encodeURIComponent(name)}`;

/** Set a secret of the token's tenant. */
export async function setOwnSecret(
  cli: Cli,
  name: string,
  { file, origin, ...options }: Options & SetOptions,
): Promise<void> {
  const value = await readValue(cli, file);
  const body = { value, ...(origin && { origins: origin }) };
  const secret = await ApiClient.of(cli, options).call<ShownSecret>('PUT', pathOf(name), body);
  if (options.json) return void printValue(cli.terminal, secret);
  cli.terminal.out(`Secret ${name} is set.`);
  warnOfOrigins(cli, secret, '');
}

/** Set what may receive a secret of the token's tenant. */
async function setOwnOrigins(cli: Cli, name: string, origins: string[], options: Options): Promise<void> {
  const secret = await ApiClient.of(cli, options).call<ShownSecret>('PATCH', pathOf(name), { origins });
  if (options.json) printValue(cli.terminal, secret);
  else cli.terminal.out(`Secret ${name} may be sent to: ${originsText(secret.origins)}.`);
}

/** The names of the secrets of the token's tenant. */
export async function listOwnSecrets(cli: Cli, options: Options): Promise<void> {
  const all = await ApiClient.of(cli, options).list<ShownSecret>('secrets', 'secrets');
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
export async function removeOwnSecret(cli: Cli, name: string, options: Options): Promise<void> {
  await ApiClient.of(cli, options).call('DELETE', pathOf(name));
  if (options.json) printValue(cli.terminal, { name, removed: true });
  else cli.terminal.out(`Secret ${name} is removed.`);
}

/**
 * The value of a secret, from a file or from standard input. One line break at its end is left out: editors and `echo`
 * put it there. Throws OperatorError if there is none to be read.
 *
 * Never an argument: every user of the machine sees those, and the shell remembers them.
 */
export async function readValue({ stdin }: Pick<Cli, 'stdin'>, file: string | undefined): Promise<string> {
  const text = file === undefined ? await readInput(stdin) : readText(file);
  return text.replace(/\r?\n$/, '');
}

async function readInput(stdin: Cli['stdin']): Promise<string> {
  const input = stdin();
  if (input.isTTY) {
    throw new OperatorError(
      'The value comes from standard input or a file, so that nobody sees it: use `… < file`, a pipe, or --file <path>.',
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
