import type { ServerOptions } from '../api.js';
import type { Cli } from '../cli.js';
import { OperatorError } from '../operator-error.js';
import { printValue } from '../output.js';
import { UsageError } from '../usage-error.js';
import { tasksClient } from './tasks-client.js';

export interface ForkOptions extends ServerOptions {
  at?: string;
  text?: string;
  agent?: string;
  yes?: boolean;
}

/** `baton tasks fork`: a new task from any point of a task. Lists first what it may repeat. */
export async function forkTask(
  cli: Cli,
  id: string,
  { at, text, agent, yes, ...options }: ForkOptions,
): Promise<void> {
  if (at !== undefined && !/^[1-9]\d{0,8}$/.test(at)) {
    throw new UsageError('--at must be the entry of a line of `baton tasks trace`: 1, 2, 3 …');
  }
  const client = tasksClient(cli, options);
  const wanted = {
    ...(at !== undefined && { at: Number(at) }),
    ...(text !== undefined && { text }),
    ...(agent !== undefined && { agent }),
  };
  const { done_again: doneAgain } = await client.fork(id, { ...wanted, dry_run: true });
  if (doneAgain.length > 0 && yes !== true) {
    const lines = doneAgain.map(({ entry, kind, name }) => `  ${kind} ${name} (entry ${entry})`);
    throw new OperatorError(
      `The task has done this after that entry, and the fork may do it again:\n${lines.join('\n')}\nAdd --yes to make the fork.`,
    );
  }
  const made = await client.fork(id, { ...wanted, dry_run: false });
  if (options.json) return void printValue(cli.terminal, made);
  cli.terminal.out(`Task ${id} is forked after entry ${made.at} as task ${made.task_id ?? ''}.`);
  cli.terminal.err(`Follow it with: npx baton tasks watch ${made.task_id ?? ''}`);
}
