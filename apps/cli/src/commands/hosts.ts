import { hostName, OPERATOR_ACTOR } from '@baton/database';
import type { Command } from 'commander';
import { domainToASCII } from 'node:url';
import { requireAgent } from '../agent-options.js';
import { type Cli, JSON_OPTION, type JsonOption, OperatorError } from '../cli.js';
import { printJson, printTable } from '../output.js';
import { announceCatalog, requireTenant, withPlatform } from '../platform.js';

const TITLES = ['host', 'tenant', 'agent', 'public'];
const NONE = 'No hosts are bound yet: npx baton hosts bind <host> --tenant <slug> --agent <agent>';

/** Characters that no host name has. `domainToASCII` would end the name there. */
const FOREIGN = /[^\p{L}\p{M}\p{N}._\-[\]:]/u;

interface BindOptions extends JsonOption {
  tenant: string;
  agent: string;
  public?: boolean;
}

interface ListOptions extends JsonOption {
  tenant?: string;
}

/** `baton hosts …`: the agents that answer at a host name. */
export function addHostCommands(program: Command, cli: Cli): void {
  const hosts = program
    .command('hosts')
    .description('host names bound to an agent, for callers that name no agent');

  hosts
    .command('bind')
    .description('bind a host name to an agent; replaces an earlier binding')
    .argument('<host>', 'host name that callers use, such as agents.example.com')
    .requiredOption('--tenant <slug>', 'tenant of the agent')
    .requiredOption('--agent <agent>', 'slug or id of the agent')
    .option('--public', 'allow callers without a token (default: no)')
    .option(...JSON_OPTION)
    .action((host: string, options: BindOptions) => bindHost(cli, host, options));

  hosts
    .command('list')
    .description('list the bound hosts')
    .option('--tenant <slug>', 'only of this tenant')
    .option(...JSON_OPTION)
    .action((options: ListOptions) => listHosts(cli, options));

  hosts
    .command('unbind')
    .description('remove the binding of a host name')
    .argument('<host>', 'bound host name')
    .option(...JSON_OPTION)
    .action((host: string, options: JsonOption) => unbindHost(cli, host, options));
}

/** The host name as it is stored. Throws OperatorError unless it can be a name or an address. */
export function parseHost(text: string): string {
  const name = FOREIGN.test(text) ? '' : domainToASCII(hostName(text));
  if (name !== '' && name.length <= 253) return name;
  throw new OperatorError(
    `"${text}" cannot be a host: give the name alone, such as agents.example.com, without https:// and path.`,
  );
}

async function bindHost({ source, terminal }: Cli, text: string, options: BindOptions): Promise<void> {
  const host = parseHost(text);
  await withPlatform(source, async ({ environment, tenants, agents, hosts }) => {
    const tenant = await requireTenant(tenants, options.tenant);
    const { slug: agent } = await requireAgent(agents, tenant, options.agent);
    const bound = await hosts.bind(
      { host, tenantId: tenant.id, agent, public: options.public ?? false },
      OPERATOR_ACTOR,
    );
    if (!bound) {
      throw new OperatorError(
        `"${host}" is bound to another tenant: npx baton hosts unbind ${host} frees it, npx baton hosts list shows whose it is.`,
      );
    }
    const who = bound.public ? 'everybody, also without a token' : `callers with a token of ${tenant.slug}`;
    if (options.json) printJson(terminal, { ...bound, tenant: tenant.slug });
    else terminal.out(`Host ${host} is bound to agent ${agent} of ${tenant.slug}, for ${who}.`);
    await announceCatalog(terminal, environment, tenant.id);
  });
}

async function listHosts({ source, terminal }: Cli, { tenant, json }: ListOptions): Promise<void> {
  const records = await withPlatform(source, async ({ tenants, hosts }) => {
    if (tenant !== undefined) {
      const { id, slug } = await requireTenant(tenants, tenant);
      return (await hosts.list(id)).map((binding) => ({ ...binding, tenant: slug }));
    }
    const [bindings, all] = await Promise.all([hosts.list(), tenants.list()]);
    const slugs = new Map(all.map(({ id, slug }) => [id, slug]));
    return bindings.map((binding) => ({ ...binding, tenant: slugs.get(binding.tenantId) ?? '' }));
  });
  const rows = records.map((record) => [
    record.host,
    record.tenant,
    record.agent,
    record.public ? 'yes' : '',
  ]);
  if (json) printJson(terminal, records);
  else printTable(terminal, TITLES, rows, NONE);
}

async function unbindHost({ source, terminal }: Cli, text: string, { json }: JsonOption): Promise<void> {
  const host = parseHost(text);
  await withPlatform(source, async ({ environment, hosts }) => {
    const binding = await hosts.unbind(host, OPERATOR_ACTOR);
    if (!binding) {
      throw new OperatorError(`"${host}" is not bound: npx baton hosts list shows the bound hosts.`);
    }
    if (json) printJson(terminal, binding);
    else terminal.out(`Host ${host} is no longer bound to agent ${binding.agent}.`);
    await announceCatalog(terminal, environment, binding.tenantId);
  });
}
