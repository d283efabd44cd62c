import type { Command } from 'commander';
import { placeAndReason } from '../agents/load-failure.js';
import { answerOf } from '../api.js';
import type { Cli } from '../cli.js';
import { type OperatorOptions, withOperatorApi, withOperatorOptions } from '../operator/operator-api.js';
import { printed } from '../operator/printed.js';
import { formatTime, inMib, printFields, printTable, printValue } from '../output.js';

const TITLES = ['host', 'pid', 'runs', 'slots', 'alive', 'memory', 'version', 'started', 'last seen', 'id'];

/** `baton workers`: who executes runs. */
export function addWorkersCommand(program: Command, cli: Cli): void {
  withOperatorOptions(program.command('workers'))
    .description('list the workers of the last hour, with their runs')
    .action(async (options: OperatorOptions) => {
      const { workers } = await withOperatorApi(cli, options, (api) =>
        answerOf(api.GET('/v1/admin/workers')),
      );
      if (options.json) {
        const records = workers.map(({ load_failures: failures, ...worker }) => ({
          ...printed(worker),
          loadFailures: failures.map(({ agent: slug, ...failure }) => ({ slug, ...failure })),
        }));
        return void printValue(cli.terminal, records);
      }
      const rows = workers.map(({ memory_bytes: memory, ...worker }) => [
        worker.host,
        String(worker.pid),
        String(worker.running),
        String(worker.concurrency),
        worker.alive ? 'yes' : 'no',
        memory === null ? '-' : `${inMib(memory)} MiB`,
        worker.version ?? '-',
        formatTime(new Date(worker.started_at)),
        formatTime(new Date(worker.seen_at)),
        worker.id,
      ]);
      printTable(cli.terminal, TITLES, rows, 'No worker has sent a heartbeat in the last hour.');
      for (const { id, load_failures: failures } of workers) {
        for (const failure of failures)
          cli.terminal.err(`Worker ${id} could not load ${placeAndReason(failure)}`);
      }
    });
}

/** `baton queue`: the number of runs in each class, and how long they wait. */
export function addQueueCommand(program: Command, cli: Cli): void {
  withOperatorOptions(program.command('queue'))
    .description('show the waiting and running runs of all tenants, and the number of dead letters')
    .action(async (options: OperatorOptions) => {
      const queue = await withOperatorApi(cli, options, (api) => answerOf(api.GET('/v1/admin/queue')));
      const { classes, oldest_waiting: oldest, jobs: _, ...counts } = queue;
      if (options.json) {
        const record = { classes: classes.map(printed), oldestWaiting: oldest && printed(oldest) };
        return void printValue(cli.terminal, { ...record, ...printed(counts) });
      }
      printFields(
        cli.terminal,
        [
          ...classes.map(({ class: name, runs, more, oldest_at: at, oldest_seconds: seconds }) => {
            const count = more ? `${runs} or more` : String(runs);
            const age =
              at === null ? '' : `, the oldest since ${formatTime(new Date(at))} (${Math.round(seconds)} s)`;
            return [name, count + age] as const;
          }),
          ['slots', String(counts.slots)],
          ['oldest waiting', oldest ? `task ${oldest.task_id} of ${oldest.tenant}` : '-'],
          ['dead letters', `${counts.dead_letters} runs, ${counts.dead_pushes} push configs`],
        ],
        16,
      );
    });
}
