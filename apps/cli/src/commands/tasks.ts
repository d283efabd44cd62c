import { RunStore, TaskStore } from '@baton/database';
import type { Command } from 'commander';
import { stateName } from '@baton/a2a';
import { type Cli, JSON_OPTION, type JsonOption, OperatorError } from '../cli.js';
import { printFields, printJson, printRunError } from '../output.js';
import { requireTenant, withDatabase } from '../platform.js';

interface ShowOptions extends JsonOption {
  tenant: string;
}

/** `baton tasks …`: the tasks of a tenant. */
export function addTaskCommands(program: Command, cli: Cli): void {
  const tasks = program.command('tasks').description('tasks of a tenant');

  tasks
    .command('show')
    .description('show the state of a task, and the last error in the code of its agent')
    .argument('<task>', 'id of the task')
    .requiredOption('--tenant <slug>', 'tenant of the task')
    .option(...JSON_OPTION)
    .action((task: string, options: ShowOptions) => showTask(cli, task, options));
}

async function showTask(cli: Cli, taskId: string, { tenant: slug, json }: ShowOptions): Promise<void> {
  const { record, error } = await withDatabase(cli.source, async ({ tenants, database }) => {
    const { id: tenantId } = await requireTenant(tenants, slug);
    const bare = { historyLength: 0, artifacts: false };
    const stored = await new TaskStore(database).get(tenantId, taskId, bare);
    if (!stored) {
      throw new OperatorError(`The tenant "${slug}" has no task "${taskId}", or it is past its retention.`);
    }
    const { task, agentId, sequence: events } = stored;
    const state = task.status ? stateName(task.status.state) : 'unknown';
    const error = await new RunStore(database).lastError(tenantId, taskId);
    return { record: { id: taskId, tenant: slug, agentId, contextId: task.contextId, state, events }, error };
  });
  if (json) return void printJson(cli.terminal, { ...record, error: error ?? null });
  printFields(
    cli.terminal,
    Object.entries(record).map(([name, value]) => [name, String(value)]),
  );
  if (error) printRunError(cli.terminal, error);
}
