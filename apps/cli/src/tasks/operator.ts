import { stateName } from '@baton/a2a';
import {
  ConsoleLineStore,
  JournalStore,
  RunStore,
  type RunErrorRecord,
  TaskStore,
  TaskTreeStore,
  UsageHoursStore,
} from '@baton/database';
import { TaskListing } from '@baton/tasks';
import { type Cli } from '../cli.js';
import { NotFoundError } from '../not-found-error.js';
import { type OperatorOptions, overAdminApi } from '../operator/admin-target.js';
import { errorOf, type RunErrorJson } from '../operator/remote-operations.js';
import { printFields, printRunError, printValue } from '../output.js';
import { requireTenant, withDatabase } from '../platform.js';
import { RefusedError } from '../refused-error.js';

export type ShowOptions = OperatorOptions & { json?: boolean; tenant: string };

/** A task without its contents. */
interface ShownTask {
  record: {
    id: string;
    tenant: string;
    agentId: string;
    contextId: string;
    state: string;
    events: number;
  };
  error: RunErrorRecord | null;
}

/** A task of a tenant as the operator sees it: without its contents. */
export async function showTask(cli: Cli, taskId: string, options: ShowOptions): Promise<void> {
  const { record, error } = await (
    overAdminApi(cli, options, async (api, path) =>
      readOverHttp(await api.call('GET', `${path}/requests/${encodeURIComponent(taskId)}`)),
    ) ?? readFromDatabase(cli, taskId, options)
  ).catch((refused: unknown) => {
    throw refused instanceof RefusedError && refused.status === 404 ? noSuchTask(taskId, options) : refused;
  });
  if (options.json) return void printValue(cli.terminal, { ...record, error });
  printFields(
    cli.terminal,
    Object.entries(record).map(([name, value]) => [name, String(value)]),
  );
  if (error) printRunError(cli.terminal, error);
}

async function readFromDatabase(cli: Cli, taskId: string, options: ShowOptions): Promise<ShownTask> {
  const { tenant } = options;
  return withDatabase(cli.source, async ({ tenants, database }) => {
    const { id: tenantId } = await requireTenant(tenants, tenant);
    const stores = [new TaskStore(database), new TaskTreeStore(database), new RunStore(database)] as const;
    const ofRuns = [new JournalStore(database), new ConsoleLineStore(database)] as const;
    const listing = new TaskListing(...stores, new UsageHoursStore(database), ...ofRuns);
    const found = await listing.summary(tenantId, taskId);
    if (!found) throw noSuchTask(taskId, options);
    const { task, agentId, sequence: events } = found.stored;
    const state = task.status ? stateName(task.status.state) : 'unknown';
    const record = { id: taskId, tenant, agentId, contextId: task.contextId, state, events };
    return { record, error: found.error ?? null };
  });
}

interface TaskJson {
  request_id: string;
  tenant: string;
  agent_id: string;
  context_id: string;
  state?: string;
  events: number;
  error: RunErrorJson | null;
}

const readOverHttp = ({ error, ...task }: TaskJson): ShownTask => ({
  record: {
    id: task.request_id,
    tenant: task.tenant,
    agentId: task.agent_id,
    contextId: task.context_id,
    state: task.state ?? 'unknown',
    events: task.events,
  },
  error: error && errorOf(error),
});

const noSuchTask = (taskId: string, { tenant }: ShowOptions): NotFoundError =>
  new NotFoundError(`The tenant "${tenant}" has no task "${taskId}", or it is past its retention.`);
