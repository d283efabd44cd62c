import { type Backup, BackupError, backUp } from '@baton/database';
import type { Command } from 'commander';
import { createWriteStream, existsSync, renameSync, rmSync } from 'node:fs';
import type { Writable } from 'node:stream';
import { type Cli, JSON_OPTION, type JsonOption } from '../cli.js';
import { findEnvironment } from '../connection.js';
import { printJson } from '../output.js';

/** `baton backup <file>`: everything in the database, while the system runs. */
export function addBackupCommand(program: Command, cli: Cli): void {
  program
    .command('backup')
    .description('write everything in the database to a file, as of one point in time, while the system runs')
    .argument('<file>', 'a new file, by convention *.tar.gz; - writes to standard output')
    .option(...JSON_OPTION)
    .action((file: string, options: JsonOption) => makeBackup(cli, file, options));
}

async function makeBackup(cli: Cli, file: string, { json }: JsonOption): Promise<void> {
  const { source, terminal } = cli;
  const { databaseUrl } = findEnvironment(source);
  const write = (out: Writable): Promise<Backup> => backUp(databaseUrl, out, (line) => terminal.err(line));
  const backup = await (file === '-' ? write(standardOutput(cli)) : intoFile(file, write));
  const { manifest } = backup;
  const rows = manifest.tables.reduce((sum, table) => sum + table.rows, 0);
  if (json && file !== '-') printJson(terminal, backup);
  terminal.err(
    `The backup is whole: ${rows} rows of ${manifest.tables.length} tables, as of ${manifest.createdAt}. ` +
      `Left out: ${manifest.leftOut.map(({ name }) => name).join(', ')}.`,
  );
  if (manifest.masterKeyIds.length > 0) {
    terminal.err(
      `Secrets in it are encrypted with the master key ${manifest.masterKeyIds.join(', ')}, which is not in it: ` +
        'keep BATON_MASTER_KEY in another safe place, for without it they are lost.',
    );
  }
}

function standardOutput({ stdout }: Cli): Writable {
  const out = stdout?.() ?? process.stdout;
  if (!out.isTTY) return out;
  throw new BackupError('A backup is no text for a terminal: name a file, or send standard output into one.');
}

/** Under another name until it is whole, so that nobody takes half a backup for one. Only its owner can read it. */
async function intoFile(file: string, write: (out: Writable) => Promise<Backup>): Promise<Backup> {
  if (existsSync(file)) throw new BackupError(`${file} is there already: name a new file.`);
  const partial = `${file}.partial`;
  try {
    rmSync(partial, { force: true }); // The mode counts only for a new file.
    const backup = await write(createWriteStream(partial, { flags: 'wx', mode: 0o600, flush: true }));
    renameSync(partial, file);
    return backup;
  } catch (error) {
    rmSync(partial, { force: true });
    const { code, syscall } = error as NodeJS.ErrnoException;
    if (syscall === undefined || code === undefined || error instanceof BackupError) throw error;
    if (!['open', 'write', 'fsync', 'rename', 'unlink'].includes(syscall)) throw error;
    throw new BackupError(`${file} can not be written (${code}): name a file that can be.`, { cause: error });
  }
}
