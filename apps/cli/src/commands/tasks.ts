import { RunStore, TaskStore } from '@baton/database';
import type { Command } from 'commander';
import { stateName } from '@baton/a2a';
import { type Cli, JSON_OPTION, type JsonOption } from '../cli.js';
import { withDatabase } from '../connection.js';
import { OperatorError } from '../operator-error.js';
import { printFields, printJson, printRunError } from '../output.js';
import { requireTenant } from '../require-tenant.js';

interface ShowOptions extends JsonOption {
  tenant: string;
}

/** `baton tasks …`: what the platform knows of a tenant's tasks. */
export function addTaskCommands(program: Command, cli: Cli): void {
  const tasks = program.command('tasks').description("a tenant's tasks");

  tasks
    .command('show')
    .description('show the state of one, and the last error in the code of its agent')
    .argument('<task>', 'the id of the task')
    .requiredOption('--tenant <slug>', 'whose task it is')
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
