import { SLUG } from '@baton/a2a';
import type { Tenant } from '@baton/database';
import type { Command } from 'commander';
import { type Cli, JSON_OPTION, type JsonOption } from '../cli.js';
import { type Platform, withPlatform } from '../connection.js';
import { OperatorError } from '../operator-error.js';
import { formatTime, printJson, printTable } from '../output.js';
import { requireTenant, unknownTenant } from '../require-tenant.js';
import { addLimitsCommand } from './limits.js';

const TITLES = ['slug', 'default agent', 'created (utc)', 'id'];

/** `baton tenants …`: who is served. */
export function addTenantCommands(program: Command, cli: Cli): void {
  const { source, terminal } = cli;
  const tenants = program.command('tenants').description('who is served, each apart from all others');

  const print = (tenant: Tenant, { json }: JsonOption) =>
    json ? printJson(terminal, recordOf(tenant)) : printTable(terminal, TITLES, [rowOf(tenant)], '');

  tenants
    .command('create')
    .description('create a tenant')
    .argument('<slug>', 'its name: lower-case letters, digits and hyphens')
    .option(...JSON_OPTION)
    .action(async (slug: string, options: JsonOption) => {
      assertSlug(slug);
      print(await withPlatform(source, ({ tenants }) => tenants.create(slug)), options);
    });

  tenants
    .command('list')
    .description('list the tenants')
    .option(...JSON_OPTION)
    .action(async ({ json }: JsonOption) => {
      const all = await withPlatform(source, ({ tenants }) => tenants.list());
      if (json) printJson(terminal, all.map(recordOf));
      else printTable(terminal, TITLES, all.map(rowOf), 'No tenants yet: npx baton tenants create <slug>');
    });

  tenants
    .command('set')
    .description("change a tenant's settings")
    .argument('<slug>', 'the tenant')
    .option('--default-agent <agent>', 'the agent that answers where no agent is named')
    .option(
      '--index-model <model>',
      'provider/model with which the agent index routes; none, or default for INDEX_MODEL',
    )
    .option('--index-model-url <url>', "where that model is, if not at its provider's usual address")
    .option(...JSON_OPTION)
    .action(async (slug: string, options: JsonOption & Settings) => {
      print(await withPlatform(source, (platform) => setTenant(platform, slug, options)), options);
    });

  addLimitsCommand(tenants, cli);
}

interface Settings {
  defaultAgent?: string;
  indexModel?: string;
  indexModelUrl?: string;
}

async function setTenant({ tenants, agents }: Platform, slug: string, settings: Settings): Promise<Tenant> {
  const { defaultAgent, indexModel, indexModelUrl } = settings;
  if (defaultAgent === undefined && indexModel === undefined) {
    throw new OperatorError('Say what to set: --default-agent <agent> or --index-model <provider/model>.');
  }
  const { id } = await requireTenant(tenants, slug);
  // Loaded here only: the other commands start faster without the agents.
  const { requireAgent } = await import('../require-agent.js');
  const { readIndexModel } = await import('../index-model.js');
  const agent =
    defaultAgent === undefined ? undefined : await requireAgent(agents, { id, slug }, defaultAgent);
  const model = indexModel === undefined ? {} : readIndexModel(indexModel, indexModelUrl);
  return (
    (await tenants.set(slug, { ...(agent && { defaultAgent: agent.slug }), ...model })) ?? unknownTenant(slug)
  );
}

function assertSlug(slug: string): void {
  if (SLUG.test(slug)) return;
  throw new OperatorError(
    `"${slug}" can not name a tenant: use 1 to 63 lower-case letters, digits or hyphens, beginning and ending with a letter or digit.`,
  );
}

/** The limits have a command of their own. */
const recordOf = ({ limits: _, ...tenant }: Tenant): Omit<Tenant, 'limits'> => tenant;

const rowOf = ({ slug, defaultAgent, createdAt, id }: Tenant): string[] => [
  slug,
  defaultAgent,
  formatTime(createdAt),
  id,
];
