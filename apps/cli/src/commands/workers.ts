import type { Command } from 'commander';
import type { Cli, JsonOption } from '../cli.js';
import { type OperatorOptions, withOperatorOptions } from '../operator/admin-target.js';
import { withOperations } from '../operator/platform-operations.js';
import { formatTime, oneLine, printValue, printTable } from '../output.js';

const TITLES = ['host', 'pid', 'runs', 'slots', 'started', 'last seen', 'id'];

/** `baton workers`: who executes runs. */
export function addWorkersCommand(program: Command, cli: Cli): void {
  withOperatorOptions(program.command('workers'))
    .description('list the workers that have given a sign of life in the last hour, with their runs')
    .action(async (options: JsonOption & OperatorOptions) => {
      const workers = await withOperations(cli, options, (operations) => operations.listWorkers());
      if (options.json) return void printValue(cli.terminal, workers);
      const rows = workers.map(({ id, host, pid, running, concurrency, startedAt, seenAt }) => [
        ...[host, String(pid), String(running), String(concurrency)],
        ...[formatTime(startedAt), formatTime(seenAt), id],
      ]);
      printTable(cli.terminal, TITLES, rows, 'No worker has given a sign of life in the last hour.');
      for (const { id, loadFailures } of workers) {
        for (const { file, line, reason } of loadFailures) {
          const at = line === null ? '' : `:${line}`;
          cli.terminal.err(`Worker ${id} could not load ${file}${at}: ${oneLine(reason, 300)}`);
        }
      }
    });
}
