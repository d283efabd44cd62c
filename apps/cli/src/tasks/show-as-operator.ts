import { answerOf } from '../api.js';
import { type Cli } from '../cli.js';
import { NotFoundError } from '../not-found-error.js';
import { type OperatorOptions, refusalOf, withOperatorApi } from '../operator/operator-api.js';
import { printed } from '../operator/printed.js';
import { printFields, printRunError, printValue } from '../output.js';

/** A task of a tenant as the operator sees it: without its contents. */
export async function showTaskAsOperator(
  cli: Cli,
  id: string,
  { tenant, json, ...options }: OperatorOptions & { tenant: string },
): Promise<void> {
  const params = { path: { tenant, id } };
  const { error, ...task } = await withOperatorApi(cli, options, (api) =>
    answerOf(api.GET('/v1/admin/tenants/{tenant}/tasks/{id}', { params })),
  ).catch((refused: unknown) => {
    if (refusalOf(refused)?.status !== 404) throw refused;
    throw new NotFoundError(`The tenant "${tenant}" has no task "${id}", or it is past its retention.`);
  });
  const record = {
    id: task.task_id,
    tenant,
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
