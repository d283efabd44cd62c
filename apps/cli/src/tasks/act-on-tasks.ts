import type { ServerOptions } from '../api.js';
import type { Cli } from '../cli.js';
import { OfTaskError } from '../of-task-error.js';
import { printValue } from '../output.js';
import { taskRecord, tasksClient } from './tasks-client.js';

/** `baton tasks cancel`. */
export function cancelTasks(cli: Cli, ids: readonly string[], options: ServerOptions): Promise<void> {
  const client = tasksClient(cli, options);
  return actOnEach(cli, ids, options, async (id) => {
    await client.cancel(id);
    return { record: { cancelled: true }, line: `Task ${id} is canceled.` };
  });
}

/** `baton tasks resume`: parked tasks continue with the present code of their agents. */
export function resumeTasks(cli: Cli, ids: readonly string[], options: ServerOptions): Promise<void> {
  const client = tasksClient(cli, options);
  return actOnEach(cli, ids, options, async (id) => {
    await client.resume(id);
    return { record: { resumed: true }, line: `Task ${id} continues.` };
  });
}

/** Stops at the first task that fails, whose id the error names. */
async function actOnEach(
  { terminal }: Cli,
  ids: readonly string[],
  { json }: ServerOptions,
  act: (id: string) => Promise<{ record: object; line: string }>,
): Promise<void> {
  const records: object[] = [];
  for (const id of ids) {
    const { record, line } = await act(id).catch((error: unknown) => {
      throw new OfTaskError(id, error);
    });
    records.push(taskRecord({ task_id: id, ...record }));
    if (!json) terminal.out(line);
  }
  if (json) printValue(terminal, records);
}

/** `baton tasks continue`: a failed task continues at the point of failure, as a new task. */
export async function continueTask(cli: Cli, id: string, options: ServerOptions): Promise<void> {
  const made = await tasksClient(cli, options).continueTask(id);
  printMade(cli, made, options, `Task ${id} continues as task ${made.task_id}.`);
}

/** `baton tasks send-again`: the first message of a task again, as a new task in the same context. */
export async function sendTaskAgain(cli: Cli, id: string, options: ServerOptions): Promise<void> {
  const made = await tasksClient(cli, options).sendAgain(id);
  printMade(cli, made, options, `Task ${id} is sent again as task ${made.task_id}.`);
}

function printMade(
  { terminal }: Cli,
  made: { task_id: string },
  { json }: ServerOptions,
  line: string,
): void {
  if (json) return printValue(terminal, taskRecord(made));
  terminal.out(line);
  terminal.err(`Follow it with: npx baton tasks watch ${made.task_id}`);
}
