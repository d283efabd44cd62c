import type { OperatorSchemas } from '@baton/contract';
import type { Command } from 'commander';
import { answerOf } from '../api.js';
import { type Cli } from '../cli.js';
import { NotFoundError } from '../not-found-error.js';
import { OperatorError } from '../operator-error.js';
import {
  type OperatorOptions,
  refusalOf,
  withOperatorApi,
  withOperatorOptions,
} from '../operator/operator-api.js';
import { printed } from '../operator/printed.js';
import { printValue, printTable } from '../output.js';

const TITLES = ['host', 'tenant', 'agent', 'public'];
const NONE = 'No hosts are bound yet: npx baton hosts bind <host> --tenant <slug> --agent <agent>';

interface BindOptions extends OperatorOptions {
  tenant: string;
  agent: string;
  public?: boolean;
}

/** `baton hosts …`: the agents that answer at a host name. */
export function addHostCommands(program: Command, cli: Cli): void {
  const hosts = program
    .command('hosts')
    .description('host names bound to an agent, for callers that name no agent');

  withOperatorOptions(hosts.command('bind'))
    .description('bind a host name to an agent; replaces an earlier binding')
    .argument('<host>', 'host name that callers use, such as agents.example.com')
    .requiredOption('--tenant <slug>', 'tenant of the agent')
    .requiredOption('--agent <agent>', 'slug or id of the agent')
    .option('--public', 'allow callers without a token (default: no)')
    .action((host: string, options: BindOptions) => bindHost(cli, host, options));

  withOperatorOptions(hosts.command('list'))
    .description('list the bound hosts')
    .option('--tenant <slug>', 'only of this tenant')
    .action((options: OperatorOptions & { tenant?: string }) => listHosts(cli, options));

  withOperatorOptions(hosts.command('unbind'))
    .description('remove the binding of a host name')
    .argument('<host>', 'bound host name')
    .action((host: string, options: OperatorOptions) => unbindHost(cli, host, options));
}

async function bindHost(cli: Cli, host: string, options: BindOptions): Promise<void> {
  const { tenant, agent, public: open = false, json } = options;
  const bound = await withOperatorApi(cli, options, (api) =>
    answerOf(
      api.PUT('/v1/admin/hosts/{host}', {
        params: { path: { host } },
        body: { tenant, agent, public: open },
      }),
    ),
  ).catch(explainRefusal(host, options));
  const who = open ? 'all callers, also without a token' : `callers with a token of ${bound.tenant}`;
  if (json) printValue(cli.terminal, printed(bound));
  else
    cli.terminal.out(`Host ${bound.host} is bound to agent ${bound.agent} of ${bound.tenant}, for ${who}.`);
}

async function listHosts(cli: Cli, options: OperatorOptions & { tenant?: string }): Promise<void> {
  const { tenant, json } = options;
  const { hosts } = await withOperatorApi(cli, options, (api) =>
    answerOf(api.GET('/v1/admin/hosts', { params: { query: { tenant } } })),
  );
  if (json) return void printValue(cli.terminal, hosts.map(printed));
  printTable(cli.terminal, TITLES, hosts.map(rowOf), NONE);
}

const rowOf = ({ host, tenant, agent, public: open }: OperatorSchemas['TenantHost']): string[] => [
  host,
  tenant,
  agent,
  open ? 'yes' : '',
];

async function unbindHost(cli: Cli, host: string, options: OperatorOptions): Promise<void> {
  const binding = await withOperatorApi(cli, options, (api) =>
    answerOf(api.DELETE('/v1/admin/hosts/{host}', { params: { path: { host } } })),
  ).catch(explainRefusal(host, options));
  if (options.json) printValue(cli.terminal, printed(binding));
  else cli.terminal.out(`Host ${binding.host} is no longer bound to agent ${binding.agent}.`);
}

/** Says what to do, in the words of the command. */
const explainRefusal =
  (host: string, { tenant, agent }: OperatorOptions & { tenant?: string; agent?: string }) =>
  (error: unknown): never => {
    const { status, reason = '' } = refusalOf(error) ?? {};
    if (status === 404) {
      throw new NotFoundError(`"${host}" is not bound: npx baton hosts list shows the bound hosts.`);
    }
    if (status === 409) {
      throw new OperatorError(
        `"${host}" is bound to another tenant: npx baton hosts unbind ${host} frees it, npx baton hosts list shows whose it is.`,
      );
    }
    if (reason.startsWith('agent: ')) {
      const slug = tenant ?? '';
      throw new NotFoundError(
        `Tenant "${slug}" has no agent "${agent ?? ''}": npx baton agents list --tenant ${slug} shows its agents.`,
      );
    }
    if (reason.startsWith('host: ')) throw new OperatorError(`${reason.slice('host: '.length)}.`);
    throw error;
  };
