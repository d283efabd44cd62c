import type { Environment } from '@baton/config';
import {
  AuditStore,
  type AuditAction,
  type Backup,
  backUp,
  BackupError,
  Database,
  InstallationStore,
  type Manifest,
  OPERATOR_ACTOR,
  PLATFORM,
  restoreBackup,
  roleOf,
  verifyBackup,
} from '@baton/database';
import { SecretBox } from '@baton/identity';
import { messageOf } from '@baton/telemetry';
import type { Command } from 'commander';
import { createReadStream, createWriteStream, existsSync, renameSync, rmSync, statSync } from 'node:fs';
import { Readable, type Writable } from 'node:stream';
import { type Cli, JSON_OPTION, type JsonOption } from '../cli.js';
import { OperatorError } from '../operator-error.js';
import { printValue, type Terminal } from '../output.js';
import { findEnvironment } from '../platform.js';
import { withProgress } from '../progress.js';

/** `baton backup <file>`: everything in the database, while the system runs. */
export function addBackupCommand(program: Command, cli: Cli): void {
  program
    .command('backup')
    .description('write the whole database to a file, as of one point in time; Baton may run meanwhile')
    .argument('<file>', 'new file, such as baton.tar.gz; - writes to standard output')
    .option(...JSON_OPTION)
    .action((file: string, options: JsonOption) => makeBackup(cli, file, options));
}

async function makeBackup(cli: Cli, file: string, { json }: JsonOption): Promise<void> {
  const { source, terminal } = cli;
  const environment = findEnvironment(source);
  const { databaseDirectUrl: databaseUrl, databaseSystemKey } = environment;
  const write = (out: Writable): Promise<Backup> =>
    backUp({ databaseUrl, databaseSystemKey }, out, (line) => terminal.err(line));
  const backup = await (file === '-' ? write(standardOutput(cli)) : intoFile(terminal, file, write));
  const { manifest } = backup;
  const rows = manifest.tables.reduce((sum, table) => sum + table.rows, 0);
  await record(cli, environment, 'backup.create', manifest);
  if (json && file !== '-') printValue(terminal, backup);
  terminal.err(
    `The backup is complete: ${rows} rows of ${manifest.tables.length} tables, as of ${manifest.createdAt}. ` +
      `Left out: ${manifest.leftOut.map(({ name }) => name).join(', ')}.`,
  );
  if (manifest.masterKeyIds.length > 0) {
    terminal.err(
      `Its secrets are encrypted with the master key ${manifest.masterKeyIds.join(', ')}, which is not in the backup. ` +
        'Keep BATON_MASTER_KEY in another safe place: without it the secrets are lost.',
    );
  }
}

/** Writes into the audit log. A role that may only read makes a backup, too, and leaves no record. */
async function record(
  { terminal }: Cli,
  { databaseDirectUrl: url, databaseSystemKey: systemKey, allowRlsBypass }: Environment,
  action: AuditAction,
  { createdAt, release }: Manifest,
): Promise<void> {
  const database = new Database({ url, systemKey, poolSize: 1, allowRlsBypass });
  try {
    await new AuditStore(database).write(PLATFORM, {
      action,
      target: { kind: 'database', name: 'backup' },
      by: OPERATOR_ACTOR,
      detail: { createdAt, release },
    });
    if (action === 'backup.create') await new InstallationStore(database).noteBackup(createdAt);
  } catch (error) {
    const reason = messageOf(error);
    terminal.err(`The audit log has no record of this: ${reason}`);
  } finally {
    await database.close();
  }
}

/** Throws BackupError for a terminal. */
export function standardOutput({ stdout }: Pick<Cli, 'stdout'>): Writable {
  const out = stdout?.() ?? process.stdout;
  if (!out.isTTY) return out;
  throw new BackupError(
    'This is much, and not for a terminal: name a file, or redirect standard output to one.',
  );
}

/** Under another name until it is complete, so that half a file is never taken for a backup. Only its owner can read it. */
export async function intoFile<T>(
  terminal: Terminal,
  file: string,
  write: (out: Writable) => Promise<T>,
): Promise<T> {
  if (existsSync(file)) throw new BackupError(`${file} already exists: name a new file.`);
  const partial = `${file}.partial`;
  try {
    rmSync(partial, { force: true }); // The mode counts only for a new file.
    const out = createWriteStream(partial, { flags: 'wx', mode: 0o600, flush: true });
    const written = await withProgress(terminal, 'Writing', { done: () => out.bytesWritten }, () =>
      write(out),
    );
    renameSync(partial, file);
    return written;
  } catch (error) {
    rmSync(partial, { force: true });
    const { code, syscall } = error as NodeJS.ErrnoException;
    if (syscall === undefined || code === undefined || error instanceof BackupError) throw error;
    if (!['open', 'write', 'fsync', 'rename', 'unlink'].includes(syscall)) throw error;
    throw new BackupError(`${file} cannot be written (${code}): name another file.`, { cause: error });
  }
}

interface RestoreFlags extends JsonOption {
  force?: boolean;
  check?: boolean;
}

/** `baton restore <file>`: a backup into an empty database, while no process of Baton uses it. */
export function addRestoreCommand(program: Command, cli: Cli): void {
  program
    .command('restore')
    .description('restore a backup into an empty database; stop every API and worker first')
    .argument('<file>', 'file made by `baton backup`; - reads standard input')
    .option('--force', 'DELETE everything in the database first')
    .option('--check', 'only compare the file with its checksums; needs no database')
    .option(...JSON_OPTION)
    .action((file: string, flags: RestoreFlags) =>
      flags.check ? check(cli, file, flags) : restore(cli, file, flags),
    );
}

async function check(cli: Cli, file: string, { json }: RestoreFlags): Promise<void> {
  const manifest = await verifyBackup(opener(cli, file)());
  if (json) printValue(cli.terminal, manifest);
  else cli.terminal.out(`The backup is complete. ${describe(manifest)}`);
}

async function restore(cli: Cli, file: string, { force = false, json }: RestoreFlags): Promise<void> {
  const { source, terminal } = cli;
  const environment = findEnvironment(source);
  const restored = await restoreBackup(asOwner(environment), {
    open: opener(cli, file),
    canBeReadTwice: file !== '-' && statSync(file).isFile(),
    force,
    role: environment.migrateDatabaseUrl && roleOf(environment.databaseDirectUrl),
    report: (line) => terminal.err(line),
  });
  const { manifest, interruptedRuns, migrated } = restored;
  await record(cli, environment, 'backup.restore', manifest);
  if (json) printValue(terminal, restored);
  else terminal.out(`Restored. ${describe(manifest)}`);
  if (migrated.length > 0) terminal.err(`Migrated to this release: ${migrated.join(', ')}.`);
  if (interruptedRuns > 0) {
    terminal.err(
      `${interruptedRuns} runs were running at the time of the backup: workers execute them again.`,
    );
  }
  warnOfKeys(cli, environment, manifest);
}

/** Connects to the database with the role that owns the tables. Throws OperatorError if it is on another server. */
function asOwner({ databaseDirectUrl: databaseUrl, migrateDatabaseUrl, databaseSystemKey }: Environment) {
  if (migrateDatabaseUrl === undefined) return { databaseUrl, databaseSystemKey };
  if (new URL(databaseUrl).host !== new URL(migrateDatabaseUrl).host) {
    throw new OperatorError(
      'MIGRATE_DATABASE_URL and DATABASE_URL name different servers: set both to the database that you restore.',
    );
  }
  return { databaseUrl: migrateDatabaseUrl, databaseSystemKey };
}

function warnOfKeys({ terminal }: Cli, environment: Environment, { masterKeyIds }: Manifest): void {
  const box = new SecretBox(environment);
  const unknown = masterKeyIds.filter((id) => !box.knows(id));
  if (unknown.length === 0) return;
  terminal.err(
    `Warning: secrets are encrypted with the master key ${unknown.join(', ')}, which is neither BATON_MASTER_KEY nor ` +
      'in BATON_MASTER_KEY_PREVIOUS. Agents that need these secrets fail until you add the key.',
  );
}

/** Opens the file again at each call. Throws OperatorError if there is none. */
export function opener({ stdin }: Pick<Cli, 'stdin'>, file: string): () => AsyncIterable<Uint8Array> {
  if (file === '-') {
    const input = stdin();
    if (input.isTTY)
      throw new OperatorError('The file comes from standard input: use `… - < file`, or name the file.');
    return () => Readable.from(input);
  }
  try {
    statSync(file);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new OperatorError(`${file} cannot be read (${code ?? 'unknown reason'}): name another file.`);
  }
  return () => createReadStream(file);
}

function describe({ release, createdAt, tables }: Manifest): string {
  const rows = tables.reduce((sum, table) => sum + table.rows, 0);
  return `It was made at ${createdAt} by release ${release} and has ${rows} rows of ${tables.length} tables.`;
}
