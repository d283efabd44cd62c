import type { Command } from 'commander';
import { TOKEN_OPTION, URL_OPTION } from '../api-client.js';
import type * as operatorCommands from '../catalog/operator-agents.js';
import type * as tenantCommands from '../catalog/tenant-agents.js';
import { type Cli, JSON_OPTION, type JsonOption } from '../cli.js';

type Operator = typeof operatorCommands;
type Tenant = typeof tenantCommands;

/** With `--tenant` the operator's way, through the database; else a tenant's, over HTTP with its token. */
type EitherOptions = tenantCommands.ServerOptions & { tenant?: string };

// Loaded when they are called: a command starts faster without the others.
const operator = (): Promise<Operator> => import('../catalog/operator-agents.js');
const tenant = (): Promise<Tenant> => import('../catalog/tenant-agents.js');

/** `baton agents …`: the agents of a tenant. */
export function addAgentCommands(program: Command, cli: Cli): void {
  const agents = program.command('agents').description('the agents of a tenant');
  addFileCommands(agents, cli);
  addCommonCommands(agents, cli);
  addVersionCommands(agents, cli);
}

function addFileCommands(agents: Command, cli: Cli): void {
  atServer(agents.command('apply'))
    .description('make agents what files say: create them or change them, and show what changes')
    .requiredOption('-f, --file <path...>', 'agent files, or folders of them')
    .option('--dry-run', 'check everything and show what would change; write nothing')
    .option('--exit-code', 'with --dry-run: end with 2 if something would change')
    .option(...JSON_OPTION)
    .action(async (options: tenantCommands.ApplyOptions) => (await tenant()).applyFiles(cli, options));

  agents
    .command('create')
    .description('as the operator: add an agent to the catalog of a tenant')
    .requiredOption('--tenant <slug>', 'whose agent it is')
    .requiredOption('--file <agent.yaml>', 'its definition: name, description, runtime, …')
    .option('--slug <slug>', 'its name in URLs (default: what the file says, or made from its name)')
    .option(...JSON_OPTION)
    .action(async (options: operatorCommands.CreateOptions) => (await operator()).createAgent(cli, options));

  agents
    .command('schema')
    .description('print the JSON schema of agent files')
    .action(async () => (await operator()).printSchema(cli));
}

function addCommonCommands(agents: Command, cli: Cli): void {
  atServer(agents.command('list'))
    .description('list the agents a tenant can call')
    .option('--tenant <slug>', 'as the operator: whose agents')
    .option(...JSON_OPTION)
    .action(async ({ tenant: slug, ...options }: EitherOptions) => {
      if (slug === undefined) return (await tenant()).listOwnAgents(cli, options);
      return (await operator()).listAgents(cli, { tenant: slug, ...options });
    });

  atServer(agents.command('remove').alias('delete'))
    .description('delete an agent of the catalog; what it has begun it ends')
    .option('--tenant <slug>', 'as the operator: whose agent it is')
    .argument('<agent>', 'its slug or id')
    .option(...JSON_OPTION)
    .action(async (agent: string, { tenant: slug, ...options }: EitherOptions) => {
      if (slug === undefined) return (await tenant()).deleteAgent(cli, agent, options);
      return (await operator()).removeAgent(cli, agent, { tenant: slug, ...options });
    });
}

function addVersionCommands(agents: Command, cli: Cli): void {
  const ofAgent = (name: string, description: string): Command =>
    atServer(agents.command(name))
      .description(description)
      .argument('<agent>', 'its slug or id')
      .option(...JSON_OPTION);

  ofAgent('show', 'print an agent as a file that can be applied').action(
    async (agent: string, options: JsonOption) => (await tenant()).showAgent(cli, agent, options),
  );
  ofAgent('enable', 'let an agent take messages again').action(async (agent: string, options: JsonOption) =>
    (await tenant()).setEnabled(cli, agent, true, options),
  );
  ofAgent('disable', 'let an agent take no messages; what it has begun it ends').action(
    async (agent: string, options: JsonOption) => (await tenant()).setEnabled(cli, agent, false, options),
  );
  ofAgent('versions', 'list what an agent was before, the newest first').action(
    async (agent: string, options: JsonOption) => (await tenant()).listVersions(cli, agent, options),
  );
  ofAgent('restore', 'make an agent what it was at an earlier version')
    .argument('<version>', 'the number of the version')
    .action(async (agent: string, version: string, options: JsonOption) =>
      (await tenant()).restoreVersion(cli, agent, version, options),
    );
}

const atServer = (command: Command): Command => command.option(...URL_OPTION).option(...TOKEN_OPTION);
