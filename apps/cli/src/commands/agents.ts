import { type Agent, assertAgentSlug } from '@baton/a2a';
import { BUILTIN_AGENTS } from '@baton/agents';
import type { Tenant } from '@baton/database';
import type { Command } from 'commander';
import { announceCatalog } from '../announce.js';
import { assertRunnable, readDefinition } from '../agent-file.js';
import { type Cli, JSON_OPTION, type JsonOption } from '../cli.js';
import { withPlatform } from '../connection.js';
import { OperatorError } from '../operator-error.js';
import { oneLine, printJson, printTable } from '../output.js';
import { requireAgent } from '../require-agent.js';
import { requireTenant } from '../require-tenant.js';

const TITLES = ['slug', 'name', 'runtime', 'origin', 'default', 'description'];

interface TenantOption extends JsonOption {
  tenant: string;
}

interface CreateOptions extends TenantOption {
  file: string;
  slug?: string;
}

/** `baton agents …`: the agents of a tenant. */
export function addAgentCommands(program: Command, cli: Cli): void {
  const agents = program.command('agents').description('the agents of a tenant');

  agents
    .command('list')
    .description('list the agents a tenant can call')
    .requiredOption('--tenant <slug>', 'whose agents')
    .option(...JSON_OPTION)
    .action((options: TenantOption) => listAgents(cli, options));

  agents
    .command('create')
    .description('add an agent to the catalog of a tenant')
    .requiredOption('--tenant <slug>', 'whose agent it is')
    .requiredOption('--file <agent.yaml>', 'its definition: name, description, runtime, …')
    .option('--slug <slug>', 'its name in URLs (default: made from the name in the file)')
    .option(...JSON_OPTION)
    .action((options: CreateOptions) => createAgent(cli, options));

  agents
    .command('remove')
    .description('remove an agent from the catalog of a tenant')
    .requiredOption('--tenant <slug>', 'whose agent it is')
    .argument('<agent>', 'its slug or id')
    .option(...JSON_OPTION)
    .action((agent: string, options: TenantOption) => removeAgent(cli, agent, options));
}

/** The slug that a name suggests: `Trip planner` becomes `trip-planner`. */
export const slugOf = (name: string): string =>
  name
    .normalize('NFKD')
    .toLowerCase()
    .replace(/[^a-z0-9\s_-]/g, '')
    .replace(/[\s_-]+/g, '-')
    .slice(0, 63)
    .replace(/^-|-$/g, '');

async function listAgents({ source, terminal }: Cli, { tenant, json }: TenantOption): Promise<void> {
  const { agents, defaultAgent } = await withPlatform(source, async (platform) => {
    const { id, defaultAgent } = await requireTenant(platform.tenants, tenant);
    return { agents: [...BUILTIN_AGENTS, ...(await platform.agents.list(id))], defaultAgent };
  });
  const records = agents.map((agent) => ({ ...recordOf(agent), default: agent.slug === defaultAgent }));
  const rows = records.map((agent) => [
    agent.slug,
    agent.name,
    agent.runtime,
    agent.origin,
    agent.default ? 'yes' : '',
    oneLine(agent.description, 60),
  ]);
  if (json) printJson(terminal, records);
  else printTable(terminal, TITLES, rows, '');
}

async function createAgent({ source, terminal }: Cli, options: CreateOptions): Promise<void> {
  const { tenant, file, json } = options;
  const definition = readDefinition(file);
  const slug = options.slug ?? slugOf(definition.name);
  assertAgentSlug(slug);
  assertRunnable(file, definition);
  await withPlatform(source, async ({ environment, tenants, agents }) => {
    const { id: tenantId } = await requireTenant(tenants, tenant);
    const agent = await agents.create({ tenantId, slug, definition });
    if (json) printJson(terminal, recordOf(agent));
    else terminal.out(`Agent ${slug} is in the catalog of ${tenant}: npx baton send ${slug} "hello"`);
    await announceCatalog(terminal, environment, tenantId);
  });
}

async function removeAgent({ source, terminal }: Cli, name: string, options: TenantOption): Promise<void> {
  const { tenant: slug, json } = options;
  await withPlatform(source, async ({ environment, tenants, agents }) => {
    const tenant = await requireTenant(tenants, slug);
    const agent = await requireAgent(agents, tenant, name);
    assertRemovable(agent, tenant);
    await agents.remove(tenant.id, agent.slug);
    if (json) printJson(terminal, recordOf(agent));
    else terminal.out(`Agent ${agent.slug} is removed from the catalog of ${slug}.`);
    await announceCatalog(terminal, environment, tenant.id);
  });
}

function assertRemovable({ slug, origin }: Agent, { slug: tenant, defaultAgent }: Tenant): void {
  if (origin === 'builtin') {
    throw new OperatorError(`"${slug}" is built in: only agents of the catalog can be removed.`);
  }
  if (origin === 'installed') {
    throw new OperatorError(
      `"${slug}" is installed on the workers: remove its folder from BATON_AGENTS_DIR.`,
    );
  }
  if (slug === defaultAgent) {
    throw new OperatorError(
      `"${slug}" is the default agent of tenant "${tenant}": set another first, npx baton tenants set ${tenant} --default-agent index`,
    );
  }
}

/** Without the runtime's settings: they may hold what is not for everybody's eyes. */
const recordOf = ({ id, slug, origin, definition: { name, description, version, runtime } }: Agent) => ({
  id,
  slug,
  name,
  description,
  version,
  runtime,
  origin,
});
