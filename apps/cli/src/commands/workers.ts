import type { Command } from 'commander';
import { placeAndReason } from '../agents/agents-client.js';
import type { Cli, JsonOption } from '../cli.js';
import { type OperatorOptions, withOperatorOptions } from '../operator/admin-target.js';
import { withOperations } from '../operator/operations.js';
import { formatTime, printFields, printTable, printValue } from '../output.js';

const TITLES = ['host', 'pid', 'runs', 'slots', 'alive', 'memory', 'version', 'started', 'last seen', 'id'];
const MIB = 1024 * 1024;

/** `baton workers`: who executes runs. */
export function addWorkersCommand(program: Command, cli: Cli): void {
  withOperatorOptions(program.command('workers'))
    .description('list the workers of the last hour, with their runs')
    .action(async (options: JsonOption & OperatorOptions) => {
      const workers = await withOperations(cli, options, (operations) => operations.listWorkers());
      if (options.json) return void printValue(cli.terminal, workers);
      const rows = workers.map(({ host, pid, running, concurrency, startedAt, seenAt, ...worker }) => [
        host,
        String(pid),
        String(running),
        String(concurrency),
        worker.isAlive ? 'yes' : 'no',
        worker.memoryBytes === null ? '-' : `${Math.round(worker.memoryBytes / MIB)} MiB`,
        worker.version ?? '-',
        formatTime(startedAt),
        formatTime(seenAt),
        worker.id,
      ]);
      printTable(cli.terminal, TITLES, rows, 'No worker has given a sign of life in the last hour.');
      for (const { id, loadFailures } of workers) {
        for (const failure of loadFailures)
          cli.terminal.err(`Worker ${id} could not load ${placeAndReason(failure)}`);
      }
    });
}

/** `baton queue`: how much work there is, and how long it waits. */
export function addQueueCommand(program: Command, cli: Cli): void {
  withOperatorOptions(program.command('queue'))
    .description('show the waiting and running runs of all tenants, and the number of dead letters')
    .action(async (options: JsonOption & OperatorOptions) => {
      const queue = await withOperations(cli, options, (operations) => operations.readQueue());
      if (options.json) return void printValue(cli.terminal, queue);
      const { oldestWaiting: oldest, slots, deadLetters, deadPushes } = queue;
      printFields(
        cli.terminal,
        [
          ...queue.classes.map(({ class: name, runs, more, oldestAt, oldestSeconds }): [string, string] => [
            name,
            [
              more ? `${runs} or more` : String(runs),
              ...(oldestAt === null
                ? []
                : [`the oldest since ${formatTime(oldestAt)} (${Math.round(oldestSeconds)} s)`]),
            ].join(', '),
          ]),
          ['slots', String(slots)],
          ['oldest waiting', oldest ? `task ${oldest.taskId} of ${oldest.tenant}` : '-'],
          ['dead letters', `${deadLetters} runs, ${deadPushes} push configs`],
        ],
        16,
      );
    });
}
