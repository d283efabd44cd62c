import type { SecretInfo } from '@baton/database';
import { Secrets } from '@baton/identity';
import type { Command } from 'commander';
import { type TargetOptions, TOKEN_OPTION, URL_OPTION } from '../api-client.js';
import { type Cli, JSON_OPTION, type JsonOption } from '../cli.js';
import { withPlatform } from '../connection.js';
import { OperatorError } from '../operator-error.js';
import { formatTime, printJson, printTable } from '../output.js';
import { readValue } from '../read-value.js';
import { requireTenant } from '../require-tenant.js';
import { listOwnSecrets, removeOwnSecret, setOwnSecret } from '../tenant-secrets.js';

const TITLES = ['name', 'key', 'created (utc)', 'updated (utc)'];

interface TenantOption extends JsonOption {
  tenant: string;
}

/** With `--tenant` the operator's way, through the database; else a tenant's, over HTTP with its token. */
type EitherOptions = TargetOptions & JsonOption & { tenant?: string };

interface SetOptions {
  file?: string;
}

/** `baton secrets …`: what a tenant entrusts to the platform, encrypted with the master key. */
export function addSecretCommands(program: Command, cli: Cli): void {
  const secrets = program
    .command('secrets')
    .description("a tenant's secrets, encrypted with BATON_MASTER_KEY; their values are never shown");
  const command = (name: string): Command =>
    secrets
      .command(name)
      .option('--tenant <slug>', 'as the operator: whose secrets')
      .option(...URL_OPTION)
      .option(...TOKEN_OPTION)
      .option(...JSON_OPTION);

  command('set')
    .description('set a secret to what comes over standard input or stands in a file')
    .argument('<name>', 'its name: letters, digits, dots, hyphens, underscores')
    .option('--file <path>', 'read the value from this file (default: standard input)')
    .action((name: string, { tenant, ...options }: EitherOptions & SetOptions) =>
      tenant === undefined ? setOwnSecret(cli, name, options) : setSecret(cli, name, { tenant, ...options }),
    );

  command('list')
    .description('list the secrets: names, the id of the key of each, dates')
    .action(({ tenant, ...options }: EitherOptions) =>
      tenant === undefined ? listOwnSecrets(cli, options) : listSecrets(cli, { tenant, ...options }),
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
      'encrypt the secrets of all tenants with the newest key; earlier keys can be dropped after it',
    )
    .option(...JSON_OPTION)
    .action((options: JsonOption) => rotateSecrets(cli, options));
}

/** Do `work` with the secrets of the platform, and those of one tenant if it is named. */
function withSecrets<T>(cli: Cli, slug: string, work: (secrets: Secrets, tenantId: string) => Promise<T>) {
  return withPlatform(cli.source, async ({ environment, secrets, tenants }) => {
    const { id } = await requireTenant(tenants, slug);
    return work(new Secrets(secrets, environment), id);
  });
}

async function setSecret(
  cli: Cli,
  name: string,
  { tenant, file, json }: SetOptions & TenantOption,
): Promise<void> {
  const value = await readValue(cli, file);
  const info = await withSecrets(cli, tenant, (secrets, tenantId) => secrets.set(tenantId, name, value));
  if (json) printJson(cli.terminal, info);
  else cli.terminal.out(`Secret ${name} of ${tenant} is set, encrypted with the key ${info.keyId}.`);
}

async function listSecrets(cli: Cli, { tenant, json }: TenantOption): Promise<void> {
  const all = await withSecrets(cli, tenant, (secrets, tenantId) => secrets.list(tenantId));
  const none = `No secrets yet: npx baton secrets set <name> --tenant ${tenant} < file`;
  if (json) printJson(cli.terminal, all);
  else printTable(cli.terminal, TITLES, all.map(rowOf), none);
}

async function removeSecret(cli: Cli, name: string, { tenant, json }: TenantOption): Promise<void> {
  const removed = await withSecrets(cli, tenant, (secrets, tenantId) => secrets.remove(tenantId, name));
  if (!removed) {
    throw new OperatorError(
      `Tenant "${tenant}" has no secret "${name}": npx baton secrets list --tenant ${tenant} shows those it has.`,
    );
  }
  if (json) printJson(cli.terminal, { name, removed });
  else cli.terminal.out(`Secret ${name} of ${tenant} is removed.`);
}

async function rotateSecrets({ source, terminal }: Cli, { json }: JsonOption): Promise<void> {
  const rotation = await withPlatform(source, ({ environment, secrets }) =>
    new Secrets(secrets, environment).rotate(),
  );
  const { keyId, rotated, failures } = rotation;
  if (json) printJson(terminal, rotation);
  else terminal.out(`${rotated} secrets were encrypted anew; the key in use is ${keyId}.`);
  if (failures.length > 0) {
    throw new OperatorError(
      [
        ...failures,
        'Keep the earlier keys in BATON_MASTER_KEY_PREVIOUS until a rotation ends without this.',
      ].join('\n'),
    );
  }
  if (!json)
    terminal.err('No secret needs an earlier key any more: BATON_MASTER_KEY_PREVIOUS can be emptied.');
}

const rowOf = ({ name, keyId, createdAt, updatedAt }: SecretInfo): string[] => [
  name,
  keyId,
  formatTime(createdAt),
  formatTime(updatedAt),
];
