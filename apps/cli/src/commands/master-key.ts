import { ensureKeyFile, type KeyName, loadLocalEnvironment } from '@baton/config';
import { hasMasterKey } from '@baton/database';
import type { Command } from 'commander';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { type Cli } from '../cli.js';
import { UsageError } from '../usage-error.js';
import { OperatorError } from '../operator-error.js';

/** Timeout of one try. A key service answers within a second. */
const TIMEOUT_MS = 8_000;
/** A key service that restarts answers within seconds. */
const TRIES = 3;
/** Before the second try. The pause before each further try is longer by as much. */
const PAUSE_MS = 500;
/** An answer is a key, or a page with the reason why there is none. */
const MAX_BYTES = 65_536;

const secretAnswer = z.object({ data: z.object({ data: z.record(z.string(), z.unknown()) }) });
const decryptAnswer = z.object({ data: z.object({ plaintext: z.string() }) });

interface VaultOptions {
  kv?: string;
  field: string;
  transit?: string;
  wrapped?: string;
}

/** `baton master-key …`: makes the keys of an installation, or prints the master key from a key store. */
export function addMasterKeyCommands(program: Command, cli: Cli): void {
  const masterKey = program
    .command('master-key')
    .description('make the keys of a new installation, or print the master key from a key store');
  masterKey
    .command('create')
    .description(
      'make the files master-key, database-system-key and push-signing-key, for the database of DATABASE_URL; existing files stay',
    )
    .argument('<folder>', 'an existing folder')
    .option('--lost', 'make a new master key although the database was used with another one, which is lost')
    .action((folder: string, options: { lost?: boolean }) => createKeys(cli, folder, options));
  masterKey
    .command('vault')
    .description(
      'print the master key, for BATON_MASTER_KEY_COMMAND: from HashiCorp Vault or OpenBao, at VAULT_ADDR with VAULT_TOKEN or VAULT_TOKEN_FILE',
    )
    .option('--kv <path>', 'a secret of a KV engine, version 2: <mount>/<path>')
    .option('--field <name>', 'its field with the key', 'master_key')
    .option(
      '--transit <path>',
      'a key of a transit engine, which decrypts a wrapped master key: <mount>/<key>',
    )
    .option('--wrapped <file>', 'the file with the wrapped master key: vault:v1:…')
    .action(async (options: VaultOptions) => cli.terminal.out(await vaultKey(cli, options)));
}

const KEYS: readonly KeyName[] = ['master-key', 'database-system-key', 'push-signing-key'];

/** A new master key for a database that was used with another one would read none of its secrets. */
async function createKeys(
  { source, terminal }: Cli,
  folder: string,
  { lost }: { lost?: boolean },
): Promise<void> {
  const file = join(folder, 'master-key');
  const { databaseUrl, databaseSystemKey } = loadLocalEnvironment(source);
  if (databaseUrl === undefined) {
    throw new UsageError('DATABASE_URL is not set: name the database that the keys are for.');
  }
  if (!existsSync(file) && !lost && (await hasMasterKey(databaseUrl, databaseSystemKey))) {
    throw new OperatorError(
      `The file ${file} is gone, and the database was used with this master key: put the file back from your copy. ` +
        'If the key is lost, run this command with --lost, then `npx baton secrets rotate --key-lost` ' +
        '(docs/operating/secrets.md#the-master-key).',
    );
  }
  try {
    for (const name of KEYS) ensureKeyFile(join(folder, name), name);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new OperatorError(
      `Keys cannot be written to ${folder} (${code ?? 'unknown reason'}): name a folder that this user may write to.`,
    );
  }
  terminal.err(`The keys are in ${folder}. Keep a copy in another safe place: without it secrets are lost.`);
}

async function vaultKey({ source }: Cli, { kv, field, transit, wrapped }: VaultOptions): Promise<string> {
  if ((kv === undefined) === (transit === undefined) || (transit === undefined) !== (wrapped === undefined)) {
    throw new UsageError(
      'Name the key with --kv <mount>/<path>, or with --transit <mount>/<key> --wrapped <file>.',
    );
  }
  if (kv !== undefined) {
    const answer = secretAnswer.safeParse(await requestVault(source, pathOf(kv, 'data')));
    const value = answer.data?.data.data[field];
    if (typeof value === 'string') return value.trim();
    throw new OperatorError(
      `The secret ${kv} of Vault has no text in the field "${field}": name another with --field.`,
    );
  }
  const body = { ciphertext: readText(wrapped ?? '', '--wrapped') };
  const answer = decryptAnswer.safeParse(await requestVault(source, pathOf(transit ?? '', 'decrypt'), body));
  if (answer.success) return answer.data.data.plaintext;
  throw new OperatorError(
    'The answer of Vault has no plaintext: name a key of a transit engine with --transit.',
  );
}

/** `secret/baton` and `data` give `secret/data/baton`. */
function pathOf(path: string, part: string): string {
  const [mount = '', ...rest] = path.split('/').filter(Boolean).map(encodeURIComponent);
  if (rest.length > 0) return `${mount}/${part}/${rest.join('/')}`;
  throw new OperatorError(`"${path}" names no key of Vault: write it as <mount>/<name>.`);
}

/** Asks Vault, again if it is sealed or away for a moment. Errors show Vault's error, and never the token. */
async function requestVault(source: Cli['source'], path: string, body?: object): Promise<unknown> {
  const { VAULT_ADDR: address, VAULT_NAMESPACE: namespace, VAULT_TOKEN_FILE: file } = source;
  const token = source.VAULT_TOKEN ?? (file === undefined ? undefined : readText(file, 'VAULT_TOKEN_FILE'));
  if (!address || !URL.parse(address) || !token) {
    throw new OperatorError('Set VAULT_ADDR to the URL of Vault, and VAULT_TOKEN or VAULT_TOKEN_FILE.');
  }
  const headers = {
    'x-vault-request': 'true',
    'x-vault-token': token,
    'content-type': 'application/json',
    ...(namespace && { 'x-vault-namespace': namespace }),
  };
  const url = new URL(`/v1/${path}`, address);
  let reason = '';
  for (let tries = 1; tries <= TRIES; tries++) {
    if (tries > 1) await new Promise((resolve) => setTimeout(resolve, PAUSE_MS * tries));
    const signal = AbortSignal.timeout(TIMEOUT_MS);
    const request = { headers, signal, redirect: 'error' as const };
    const method = body ? { method: 'POST', body: JSON.stringify(body) } : {};
    const response = await fetch(url, { ...request, ...method }).catch((error: unknown) => {
      reason = `cannot be reached (${causeOf(error)})`;
      return undefined;
    });
    if (!response) continue;
    const text = (await response.text()).slice(0, MAX_BYTES);
    // oxlint-disable-next-line no-restricted-properties -- bounded, and from the operator's own server
    if (response.ok) return JSON.parse(text) as unknown;
    reason = `answers ${response.status}: ${text.replaceAll(/\s+/g, ' ').replaceAll(token, '[token]').slice(0, 200)}`;
    if (response.status < 429) break;
  }
  throw new OperatorError(
    `Vault at ${url.origin} ${reason}. Check the path /v1/${path} and the token's policy.`,
  );
}

const causeOf = (error: unknown): string => {
  const { cause, name } = error as { cause?: { code?: string }; name?: string };
  return cause?.code ?? name ?? 'unknown reason';
};

function readText(file: string, what: string): string {
  try {
    return readFileSync(file, 'utf8').trim();
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new OperatorError(`${what}: ${file} cannot be read (${code ?? 'unknown reason'}).`);
  }
}
