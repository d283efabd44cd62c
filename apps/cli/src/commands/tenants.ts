import type { Tenant } from '@baton/database';
import type { Command } from 'commander';
import { type Cli, JSON_OPTION, type JsonOption } from '../cli.js';
import { type Platform, withPlatform } from '../connection.js';
import { OperatorError } from '../operator-error.js';
import { formatTime, printJson, printTable } from '../output.js';
import { requireTenant, unknownTenant } from '../require-tenant.js';
import { addLimitsCommand } from './limits.js';

const SLUG = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/;
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
    .requiredOption('--default-agent <agent>', 'the agent that answers where no agent is named')
    .option(...JSON_OPTION)
    .action(async (slug: string, options: JsonOption & { defaultAgent: string }) => {
      print(
        await withPlatform(source, (platform) => setDefaultAgent(platform, slug, options.defaultAgent)),
        options,
      );
    });

  addLimitsCommand(tenants, cli);
}

async function setDefaultAgent({ tenants, agents }: Platform, slug: string, name: string): Promise<Tenant> {
  const { id } = await requireTenant(tenants, slug);
  // Loaded here only: the other commands start faster without the agents.
  const { requireAgent } = await import('../require-agent.js');
  const agent = await requireAgent(agents, { id, slug }, name);
  return (await tenants.setDefaultAgent(slug, agent.slug)) ?? unknownTenant(slug);
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
