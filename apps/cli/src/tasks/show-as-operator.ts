import type { OperatorSchemas } from '@baton/contract';
import { answerOf } from '../api.js';
import { type Cli } from '../cli.js';
import { NotFoundError } from '../not-found-error.js';
import { type OperatorOptions, refusalOf, withOperatorApi } from '../operator/operator-api.js';
import { printed } from '../operator/printed.js';
import { printFields, printRunError, printValue } from '../output.js';

/** A task of a tenant for the operator: without its contents. */
export async function showTaskAsOperator(
  cli: Cli,
  id: string,
  { tenant, ...options }: OperatorOptions & { tenant: string },
): Promise<void> {
  const params = { path: { tenant, id } };
  const task = await withOperatorApi(cli, options, (api) =>
    answerOf(api.GET('/v1/admin/tenants/{tenant}/tasks/{id}', { params })),
  ).catch(explain(`The tenant "${tenant}" has no task "${id}", or it is past its retention.`));
  print(cli, task, options);
}

/** Shows a task whose tenant the command does not name. */
export async function findTaskAsOperator(cli: Cli, id: string, options: OperatorOptions): Promise<void> {
  const params = { path: { id } };
  const task = await withOperatorApi(cli, options, (api) =>
    answerOf(api.GET('/v1/admin/tasks/{id}', { params })),
  ).catch(explain(`No tenant has a task "${id}", or it is past its retention.`));
  print(cli, task, options);
}

const explain =
  (message: string) =>
  (refused: unknown): never => {
    throw refusalOf(refused)?.status === 404 ? new NotFoundError(message) : refused;
  };

function print(cli: Cli, { error, ...task }: OperatorSchemas['TenantTask'], { json }: OperatorOptions): void {
  const record = {
    id: task.task_id,
    tenant: task.tenant,
    agentId: task.agent_id,
    contextId: task.context_id,
    state: task.state ?? 'unknown',
    events: task.events,
  };
  if (json) return void printValue(cli.terminal, { ...record, error: error && printed(error) });
  printFields(
    cli.terminal,
    Object.entries(record).map(([name, value]) => [name, String(value)]),
  );
  if (error) printRunError(cli.terminal, error);
}
