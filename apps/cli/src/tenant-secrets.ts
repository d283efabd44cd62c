import { ApiClient, type TargetOptions } from './api-client.js';
import type { Cli, JsonOption } from './cli.js';
import { formatTime, printJson, printTable } from './output.js';
import { readValue } from './read-value.js';

const TITLES = ['name', 'created (utc)', 'updated (utc)'];

type Options = TargetOptions & JsonOption;

/** A secret as the server shows it. */
interface ShownSecret {
  name: string;
  created_at: string;
  updated_at: string;
}

const pathOf = (name: string): string => `secrets/${encodeURIComponent(name)}`;

/** Set a secret of the token's tenant. */
export async function setOwnSecret(
  cli: Cli,
  name: string,
  { file, ...options }: Options & { file?: string },
): Promise<void> {
  const value = await readValue(cli, file);
  const secret = await ApiClient.of(cli, options).call<ShownSecret>('PUT', pathOf(name), { value });
  if (options.json) printJson(cli.terminal, secret);
  else cli.terminal.out(`Secret ${name} is set.`);
}

/** The names of the secrets of the token's tenant. */
export async function listOwnSecrets(cli: Cli, options: Options): Promise<void> {
  const all = await ApiClient.of(cli, options).list<ShownSecret>('secrets', 'secrets');
  const rows = all.map(({ name, created_at: created, updated_at: updated }) => [
    ...[name, formatTime(new Date(created)), formatTime(new Date(updated))],
  ]);
  if (options.json) printJson(cli.terminal, all);
  else printTable(cli.terminal, TITLES, rows, 'No secrets yet: npx baton secrets set <name> < file');
}

/** Remove a secret of the token's tenant. */
export async function removeOwnSecret(cli: Cli, name: string, options: Options): Promise<void> {
  await ApiClient.of(cli, options).call('DELETE', pathOf(name));
  if (options.json) printJson(cli.terminal, { name, removed: true });
  else cli.terminal.out(`Secret ${name} is removed.`);
}
