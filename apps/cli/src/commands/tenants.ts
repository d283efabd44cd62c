import type { OperatorPaths, OperatorSchemas } from '@baton/contract';
import type { Command } from 'commander';
import { answerOf, listAll } from '../api.js';
import { type Cli, type JsonOption } from '../cli.js';
import { NotFoundError } from '../not-found-error.js';
import { UsageError } from '../usage-error.js';
import { OperatorError } from '../operator-error.js';
import {
  inOwnWords,
  type OperatorApi,
  type OperatorOptions,
  refusalOf,
  withOperatorApi,
  withOperatorOptions,
} from '../operator/operator-api.js';
import { printed } from '../operator/printed.js';
import { formatTime, printFields, printTable, printValue } from '../output.js';
import { addTenantCapsCommand } from './caps.js';
import { addTenantArchiveCommands } from './tenant-archive.js';
import { addTenantEgressCommand } from './tenant-egress.js';
import { addTenantLimitsCommand } from './tenant-limits.js';
import { assertTenantSlug } from './tenant-slug.js';
import { addTenantsReportCommand } from './tenants-report.js';

/** Maximum length of the reason of a suspension, in characters. */
const MAX_REASON = 200;
const TITLES = ['slug', 'default agent', 'created', 'state', 'id'];

type Tenant = OperatorSchemas['Tenant'];
type TenantPatch =
  OperatorPaths['/v1/admin/tenants/{tenant}']['patch']['requestBody']['content']['application/json'];

/** `baton tenants …`: the customers or teams that Baton serves. */
export function addTenantCommands(program: Command, cli: Cli): void {
  const { terminal } = cli;
  const tenants = program.command('tenants').description('tenants; each is isolated from all others');

  const print = (tenant: Tenant, { json }: JsonOption) =>
    json ? printValue(terminal, printed(tenant)) : printTable(terminal, TITLES, [rowOf(tenant)], '');

  withOperatorOptions(tenants.command('create'))
    .description('create a tenant')
    .argument('<slug>', 'name: lower-case letters, digits and hyphens')
    .action(async (slug: string, options: OperatorOptions) => {
      assertTenantSlug(slug);
      const make = (api: OperatorApi) => answerOf(api.POST('/v1/admin/tenants', { body: { slug } }));
      print(await withOperatorApi(cli, options, make).catch(explainTaken), options);
    });

  withOperatorOptions(tenants.command('list'))
    .description('list the tenants, with their stored bytes')
    .option('--largest', 'those first that keep most')
    .action(async (options: OperatorOptions & { largest?: boolean }) => {
      const bySlug = await withOperatorApi(cli, options, (api) =>
        listAll(
          (query) => api.GET('/v1/admin/tenants', { params: { query } }),
          ({ tenants: page }) => page,
        ),
      );
      const all = options.largest
        ? bySlug.toSorted((one, other) => (other.stored_bytes ?? 0) - (one.stored_bytes ?? 0))
        : bySlug;
      const rows = all.map((tenant) => [...rowOf(tenant), String(tenant.stored_bytes ?? 'not counted yet')]);
      if (options.json) printValue(terminal, all.map(printed));
      else {
        const titles = [...TITLES, 'stored bytes'];
        printTable(terminal, titles, rows, 'No tenants yet: npx baton tenants create <slug>');
      }
    });

  withOperatorOptions(tenants.command('set'))
    .description('change settings of a tenant')
    .argument('<slug>', 'slug of the tenant')
    .option('--default-agent <agent>', 'agent for calls that name no agent')
    .option(
      '--index-model <model>',
      'model with which the agent `index` routes: provider/model, none, or default (INDEX_MODEL)',
    )
    .option('--index-model-url <url>', 'URL of that model, if not the usual one of its provider')
    .action(async (slug: string, options: SetTenantOptions) => {
      const { defaultAgent, indexModel, indexModelUrl } = options;
      if (defaultAgent === undefined && indexModel === undefined) {
        throw new UsageError(
          'Name what to change: --default-agent <agent> or --index-model <provider/model>.',
        );
      }
      const change = { default_agent: defaultAgent, index_model: indexModel, index_model_url: indexModelUrl };
      const changed = withOperatorApi(cli, options, (api) => changeTenant(api, slug, change));
      print(await changed.catch(nameOptions(slug, options)), options);
    });

  addUsageCommand(tenants, cli);
  addTenantsReportCommand(tenants, cli);
  addLifecycleCommands(tenants, cli);
  addTenantArchiveCommands(tenants, cli);
  addTenantLimitsCommand(tenants, cli);
  addTenantCapsCommand(tenants, cli);
  addTenantEgressCommand(tenants, cli);
}

interface SetTenantOptions extends OperatorOptions {
  defaultAgent?: string;
  indexModel?: string;
  indexModelUrl?: string;
}

const changeTenant = (api: OperatorApi, tenant: string, body: TenantPatch): Promise<Tenant> =>
  answerOf(api.PATCH('/v1/admin/tenants/{tenant}', { params: { path: { tenant } }, body }));

function explainTaken(error: unknown): never {
  const { status, reason = '' } = refusalOf(error) ?? {};
  if (status === 409 && reason.endsWith('exists')) throw new OperatorError(`${reason}: choose another slug.`);
  return inOwnWords(error);
}

/** Names the options instead of the fields of the API. */
const nameOptions =
  (slug: string, { defaultAgent }: SetTenantOptions) =>
  (error: unknown): never => {
    const { status, reason = '' } = refusalOf(error) ?? {};
    if (status !== 400) throw error;
    if (reason.startsWith('default_agent:')) {
      throw new NotFoundError(
        `Tenant "${slug}" has no agent "${defaultAgent ?? ''}": npx baton agents list --tenant ${slug} shows its agents.`,
      );
    }
    const named = reason
      .replace('index_model:', '--index-model')
      .replace('index_model_url:', '--index-model-url');
    throw new UsageError(`${named}.`);
  };

/** `baton tenants usage …` */
function addUsageCommand(tenants: Command, cli: Cli): void {
  withOperatorOptions(tenants.command('usage'))
    .description('show the runs, stored bytes and model tokens of a tenant')
    .argument('<slug>', 'slug of the tenant')
    .action(async (slug: string, options: OperatorOptions) => {
      const params = { path: { tenant: slug } };
      const usage = await withOperatorApi(cli, options, (api) =>
        answerOf(api.GET('/v1/admin/tenants/{tenant}/usage', { params })),
      );
      const { days, stored_bytes: stored, queued_runs: queued, running_runs: running } = usage;
      if (options.json) {
        return void printValue(cli.terminal, { ...printed(usage), days: days.map(printed) });
      }
      printFields(
        cli.terminal,
        [
          ['stored bytes', stored === null ? 'not counted yet' : String(stored)],
          ['runs', `${queued} queued, ${running} running, ${usage.suspended_runs} suspended`],
          ['dead letters', String(usage.dead_letters)],
          ...days.map(
            ({ day, input_tokens: input, output_tokens: output }) =>
              [day, `${input} input tokens, ${output} output tokens`] as const,
          ),
        ],
        14,
      );
    });
}

interface SuspendOptions extends OperatorOptions {
  reason?: string;
  stop?: boolean;
}

/** `baton tenants suspend|resume|delete …` */
function addLifecycleCommands(tenants: Command, cli: Cli): void {
  const { terminal } = cli;
  withOperatorOptions(tenants.command('suspend'))
    .description(
      'suspend a tenant: its calls are refused and its schedules do not fire; its running tasks finish',
    )
    .argument('<slug>', 'slug of the tenant')
    .option('--reason <text>', 'reason for its callers')
    .option('--stop', 'also cancel its running and queued tasks')
    .action(async (slug: string, options: SuspendOptions) => {
      const { reason, stop = false, json } = options;
      assertReason(reason);
      const params = { path: { tenant: slug } };
      const { tenant, canceled_tasks: canceledTasks } = await withOperatorApi(cli, options, (api) =>
        answerOf(api.POST('/v1/admin/tenants/{tenant}/suspend', { params, body: { reason, stop } })),
      );
      if (json) return void printValue(terminal, { tenant: printed(tenant), canceledTasks });
      const stopped = stop ? `; canceled tasks: ${canceledTasks}` : '';
      terminal.out(`Tenant ${slug} is suspended${stopped}.`);
    });

  withOperatorOptions(tenants.command('resume'))
    .description('end the suspension of a tenant')
    .argument('<slug>', 'slug of the tenant')
    .action(async (slug: string, options: OperatorOptions) => {
      const params = { path: { tenant: slug } };
      const tenant = await withOperatorApi(cli, options, (api) =>
        answerOf(api.POST('/v1/admin/tenants/{tenant}/resume', { params })),
      );
      if (options.json) printValue(terminal, printed(tenant));
      else terminal.out(`Tenant ${slug} is resumed.`);
    });

  withOperatorOptions(tenants.command('delete'))
    .description('DELETE a tenant and all its data; run it again after an interruption')
    .argument('<slug>', 'slug of the tenant')
    .option('--yes', 'really delete it')
    .action(async (slug: string, options: OperatorOptions & { yes?: boolean }) => {
      const { yes, json } = options;
      if (!yes) {
        throw new UsageError(
          `This deletes all tokens, agents, secrets, schedules and tasks of "${slug}" permanently: add --yes.`,
        );
      }
      const params = { path: { tenant: slug }, query: { confirm: slug } };
      const deleted = await withOperatorApi(cli, options, (api) =>
        answerOf(api.DELETE('/v1/admin/tenants/{tenant}', { params })),
      );
      for (const [table, rows] of Object.entries(deleted.rows))
        terminal.err(`${table}: ${rows} rows deleted`);
      if (json) return void printValue(terminal, printed(deleted));
      const rows = Object.values(deleted.rows).reduce((sum, count) => sum + count, 0);
      terminal.out(
        `Tenant ${slug} (${deleted.id}) is deleted: ${rows} rows, ${deleted.canceled_tasks} running tasks canceled.`,
      );
    });
}

function assertReason(reason: string | undefined): void {
  if (reason === undefined || (reason.trim() !== '' && reason.length <= MAX_REASON)) return;
  throw new UsageError(`--reason must be 1 to ${MAX_REASON} characters long.`);
}

const rowOf = (tenant: Tenant): string[] => [
  tenant.slug,
  tenant.default_agent,
  formatTime(new Date(tenant.created_at)),
  (tenant.deleting_at && 'being deleted') ?? (tenant.suspended_at && 'suspended') ?? 'active',
  tenant.id,
];
