import { type Manifest, restoreBackup, verifyBackup } from '@baton/database';
import { SecretBox } from '@baton/identity';
import type { Environment } from '@baton/config';
import type { Command } from 'commander';
import { createReadStream, statSync } from 'node:fs';
import { Readable } from 'node:stream';
import { type Cli, JSON_OPTION, type JsonOption } from '../cli.js';
import { findEnvironment } from '../connection.js';
import { OperatorError } from '../operator-error.js';
import { printJson } from '../output.js';

interface RestoreFlags extends JsonOption {
  force?: boolean;
  check?: boolean;
}

/** `baton restore <file>`: a backup into an empty database, while no process of Baton uses it. */
export function addRestoreCommand(program: Command, cli: Cli): void {
  program
    .command('restore')
    .description('put a backup into an empty database; stop every API and worker first')
    .argument('<file>', 'a file that `baton backup` has made; - reads standard input')
    .option('--force', 'DELETE everything that is in the database first')
    .option('--check', 'only read the file and compare it with its checksums; needs no database')
    .option(...JSON_OPTION)
    .action((file: string, flags: RestoreFlags) =>
      flags.check ? check(cli, file, flags) : restore(cli, file, flags),
    );
}

async function check(cli: Cli, file: string, { json }: RestoreFlags): Promise<void> {
  const manifest = await verifyBackup(opener(cli, file)());
  if (json) printJson(cli.terminal, manifest);
  else cli.terminal.out(`The backup is whole. ${describe(manifest)}`);
}

async function restore(cli: Cli, file: string, { force = false, json }: RestoreFlags): Promise<void> {
  const { source, terminal } = cli;
  const environment = findEnvironment(source);
  const restored = await restoreBackup(environment.databaseUrl, {
    open: opener(cli, file),
    canBeReadTwice: file !== '-' && statSync(file).isFile(),
    force,
    report: (line) => terminal.err(line),
  });
  const { manifest, interruptedRuns, migrated } = restored;
  if (json) printJson(terminal, restored);
  else terminal.out(`Restored. ${describe(manifest)}`);
  if (migrated.length > 0) terminal.err(`Migrated to this release: ${migrated.join(', ')}.`);
  if (interruptedRuns > 0) {
    terminal.err(
      `${interruptedRuns} runs were at work at the time of the backup: workers execute them again.`,
    );
  }
  warnOfKeys(cli, environment, manifest);
}

function warnOfKeys({ terminal }: Cli, environment: Environment, { masterKeyIds }: Manifest): void {
  const box = new SecretBox(environment);
  const unknown = masterKeyIds.filter((id) => !box.knows(id));
  if (unknown.length === 0) return;
  terminal.err(
    `Warning: secrets are encrypted with the master key ${unknown.join(', ')}, which is neither BATON_MASTER_KEY nor ` +
      'in BATON_MASTER_KEY_PREVIOUS. Agents that need them fail until it is there.',
  );
}

/** Opens the file anew at each call. Throws OperatorError if there is none. */
function opener({ stdin }: Cli, file: string): () => AsyncIterable<Uint8Array> {
  if (file === '-') {
    const input = stdin();
    if (input.isTTY)
      throw new OperatorError('The backup comes from standard input: use `… - < file`, or name the file.');
    return () => Readable.from(input);
  }
  try {
    statSync(file);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new OperatorError(
      `${file} can not be read (${code ?? 'unknown reason'}): name a file that can be.`,
    );
  }
  return () => createReadStream(file);
}

function describe({ release, createdAt, tables }: Manifest): string {
  const rows = tables.reduce((sum, table) => sum + table.rows, 0);
  return `It was made at ${createdAt} by release ${release} and has ${rows} rows of ${tables.length} tables.`;
}
