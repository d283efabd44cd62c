import type { Command } from 'commander';
import { join } from 'node:path';

/** The program that `npm start` runs in a clone. */
const LOCAL_BATON = join(__dirname, '../../../local/src/main.js');

/** `baton start`: everything on this machine. The program takes this process over, and ends it. */
export function addStartCommand(program: Command): void {
  program
    .command('start')
    .description(
      'run Baton on this machine: Postgres, Redis if there is one, the API and a worker; Ctrl-C stops it',
    )
    .action(async () => {
      await import(LOCAL_BATON);
      await new Promise<never>(() => undefined);
    });
}
