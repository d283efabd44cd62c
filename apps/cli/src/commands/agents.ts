import type { CheckOptions } from '../agents/check.js';
import type * as operatorCommands from '../agents/operator.js';
import type * as tenantCommands from '../agents/tenant.js';
import type { Command } from 'commander';
import { type Cli, JSON_OPTION, type JsonOption } from '../cli.js';
import { withOperatorOptions } from '../operator/operator-api.js';
import type { ServerOptions } from '../api.js';
import { UsageError } from '../usage-error.js';
import { parseCount } from '../options.js';
import { TOKEN_OPTION, URL_OPTION } from '../server.js';

type OperatorCommands = typeof operatorCommands;
type TenantCommands = typeof tenantCommands;

/** With `--tenant`: as the operator. Without: as a tenant, over HTTP with its token. */
type AgentsOptions = ServerOptions & { tenant?: string };

// Loaded when called, so that a command starts fast.
const operator = (): Promise<OperatorCommands> => import('../agents/operator.js');
const tenant = (): Promise<TenantCommands> => import('../agents/tenant.js');

/** `baton agents …`: the agents of a tenant. */
export function addAgentCommands(program: Command, cli: Cli): void {
  const agents = program.command('agents').description('the agents of a tenant');
  addFileCommands(agents, cli);
  addCommonCommands(agents, cli);
  addVersionCommands(agents, cli);
}

function addFileCommands(agents: Command, cli: Cli): void {
  atServer(agents.command('apply'))
    .description('create or change agents from files, and show the changes')
    .requiredOption('-f, --file <path...>', 'agent files, or folders with agent files')
    .option('--dry-run', 'check everything and show the changes; write nothing')
    .option(
      '--check-tools',
      'ask the MCP servers of the agents, and write nothing if a tool in a file is not there',
    )
    .option('--exit-code', 'with --dry-run: exit code 2 if something would change')
    .option(...JSON_OPTION)
    .action(async (options: tenantCommands.ApplyOptions) => (await tenant()).applyFiles(cli, options));

  atServer(agents.command('check'))
    .description(
      'replay the recorded steps of live tasks against other code of an agent; exit code 1 if one does not fit',
    )
    .argument('<folder>', 'folder of an agent in code, with its agent.yaml')
    .option('--agent <slug>', 'agent whose tasks are replayed (default: name of the folder)')
    .option(...JSON_OPTION)
    .action(async (folder: string, options: CheckOptions) =>
      (await import('../agents/check.js')).checkAgent(cli, folder, options),
    );

  withOperatorOptions(agents.command('create'))
    .description('as the operator: add an agent to the catalog of a tenant')
    .requiredOption('--tenant <slug>', 'tenant of the agent')
    .requiredOption('--file <agent.yaml>', 'file with the definition: name, description, runtime, …')
    .option('--slug <slug>', 'name in URLs (default: slug of the file, or made from the name)')
    .action(async (options: operatorCommands.CreateAgentOptions) =>
      (await operator()).createAgent(cli, options),
    );

  agents
    .command('schema')
    .description('print the JSON Schema of agent files')
    .action(async () => (await operator()).printSchema(cli));
}

function addCommonCommands(agents: Command, cli: Cli): void {
  atServer(agents.command('list'))
    .description('list the agents that a tenant can call')
    .option('--tenant <slug>', 'as the operator: tenant of the agents')
    .option(...JSON_OPTION)
    .action(async ({ tenant: slug, ...options }: AgentsOptions) => {
      if (slug === undefined) return (await tenant()).listOwnAgents(cli, options);
      return (await operator()).listAgents(cli, { tenant: slug, ...options });
    });

  atServer(agents.command('remove').alias('delete'))
    .description('delete an agent of the catalog; its running tasks finish')
    .option('--tenant <slug>', 'as the operator: tenant of the agent')
    .argument('<agent>', 'slug or id of the agent')
    .option(...JSON_OPTION)
    .action(async (agent: string, { tenant: slug, ...options }: AgentsOptions) => {
      if (slug === undefined) return (await tenant()).deleteAgent(cli, agent, options);
      return (await operator()).removeAgent(cli, agent, { tenant: slug, ...options });
    });
}

function addVersionCommands(agents: Command, cli: Cli): void {
  const ofAgent = (name: string, description: string): Command =>
    atServer(agents.command(name))
      .description(description)
      .argument('<agent>', 'slug or id of the agent')
      .option(...JSON_OPTION);

  ofAgent('show', 'print an agent as a file for apply').action(async (agent: string, options: JsonOption) =>
    (await tenant()).showAgent(cli, agent, options),
  );
  ofAgent('enable', 'enable an agent: it takes messages again').action(
    async (agent: string, options: JsonOption) => (await tenant()).setEnabled(cli, agent, true, options),
  );
  ofAgent('disable', 'disable an agent: it rejects new messages; its running tasks finish').action(
    async (agent: string, options: JsonOption) => (await tenant()).setEnabled(cli, agent, false, options),
  );
  ofAgent('versions', 'list the versions of an agent, newest first').action(
    async (agent: string, options: JsonOption) => (await tenant()).listVersions(cli, agent, options),
  );
  ofAgent('open', 'count the open tasks of an agent by the version that they began with').action(
    async (agent: string, options: JsonOption) => (await tenant()).listOpenVersions(cli, agent, options),
  );
  ofAgent('next', 'give a version the label next: a share of new tasks begins with it')
    .requiredOption(
      '--share <percent>',
      'how many of 100 new tasks begin with it; 0: only those whose sender asks for it',
    )
    .option('-f, --file <path>', 'agent file of a new version (default: the version that has the label)')
    .option('--to-version <version>', 'in place of --file: a stored version')
    .option(
      '--replaces <version>',
      'only if this version has the label now (default: with --share 0, only one without a share)',
    )
    .option('--failures <count>', 'failed runs after which it may lose its share by itself (default: 5)')
    .action(async (agent: string, options: NextCommandOptions) =>
      (await tenant()).setNextVersion(cli, agent, nextOptions(options)),
    );
  ofAgent(
    'promote',
    'make a new stable version with the contents of the version that has the label next',
  ).action(async (agent: string, options: JsonOption) => (await tenant()).promoteNext(cli, agent, options));
  ofAgent('withdraw', 'remove the label next: all new tasks begin with the stable version')
    .option('--only <version>', 'only if this version has the label')
    .action(async (agent: string, { only, ...options }: JsonOption & { only?: string }) =>
      (await tenant()).withdrawNext(cli, agent, {
        ...options,
        ...(only !== undefined && { only: parseCount('--only', only, MAX_VERSION) }),
      }),
    );
  ofAgent('restore', 'make a new version with the contents of an earlier one')
    .argument('<version>', 'number of the version')
    .action(async (agent: string, version: string, options: JsonOption) =>
      (await tenant()).restoreVersion(cli, agent, version, options),
    );
  ofAgent('erase', 'erase the contents of an earlier version permanently, such as a token in a header')
    .argument('<version>', 'number of the version')
    .action(async (agent: string, version: string, options: JsonOption) =>
      (await tenant()).eraseVersion(cli, agent, version, options),
    );
}

interface NextCommandOptions extends ServerOptions {
  share: string;
  failures?: string;
  file?: string;
  toVersion?: string;
  replaces?: string;
}

/** What the API allows. */
const MAX_FAILURES = 1_000;
const MAX_VERSION = 999_999_999;

function nextOptions({
  share,
  failures,
  toVersion,
  replaces,
  ...options
}: NextCommandOptions): tenantCommands.NextOptions {
  if (options.file !== undefined && toVersion !== undefined) {
    throw new UsageError('Give --file or --to-version, not both.');
  }
  return {
    ...options,
    share: parseCount('--share', share, 100, 0),
    ...(failures !== undefined && { failures: parseCount('--failures', failures, MAX_FAILURES) }),
    ...(toVersion !== undefined && { version: parseCount('--to-version', toVersion, MAX_VERSION) }),
    ...(replaces !== undefined && { replaces: parseCount('--replaces', replaces, MAX_VERSION) }),
  };
}

const atServer = (command: Command): Command => command.option(...URL_OPTION).option(...TOKEN_OPTION);
