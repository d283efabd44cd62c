import { settingsReport } from '@baton/config';
import type { Command } from 'commander';
import { type Cli, JSON_OPTION, type JsonOption } from '../cli.js';
import { OperatorError } from '../operator-error.js';
import { printValue } from '../output.js';

/** `baton config …`: the settings of the environment and `.env`. Values are never shown. */
export function addConfigCommands(program: Command, cli: Cli): void {
  program
    .command('config')
    .description('settings of this environment and its .env; values are never shown')
    .command('check')
    .description('list invalid settings, and names that look like a setting but are not')
    .option(...JSON_OPTION)
    .action((options: JsonOption) => check(cli, options));
}

function check({ source, terminal }: Cli, { json }: JsonOption): void {
  const report = settingsReport(source);
  if (json) printValue(terminal, report);
  else if (report.set.length === 0) terminal.out('All settings have their defaults.');
  else terminal.out(`Set: ${report.set.join(', ')}. The other settings have their defaults.`);
  const faults = [...report.problems, ...report.unknown];
  if (faults.length > 0) throw new OperatorError(faults.join('\n'));
}
