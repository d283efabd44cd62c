import { parseAgentDocument } from '@baton/a2a';
import { agentSchema } from '@baton/agents';
import type { OperatorSchemas } from '@baton/contract';
import { answerOf, listAll } from '../api.js';
import type { Cli } from '../cli.js';
import { inOwnWords, type OperatorOptions, withOperatorApi } from '../operator/operator-api.js';
import { oneLine, printValue, printTable } from '../output.js';
import type { ShownAgent } from './agents-client.js';
import { failureText } from './load-failure.js';
import { ofFile, readAgentFile } from './files.js';

const TITLES = ['slug', 'name', 'runtime', 'origin', 'default', 'description'];

export interface TenantAgentsOptions extends OperatorOptions {
  tenant: string;
}

export interface CreateAgentOptions extends TenantAgentsOptions {
  file: string;
  slug?: string;
}

/** The agents that a tenant can call. */
export async function listAgents(cli: Cli, { tenant, ...options }: TenantAgentsOptions): Promise<void> {
  const { terminal } = cli;
  const path = { tenant };
  const { agents, failures, defaultAgent } = await withOperatorApi(cli, options, async (api) => {
    const found = await answerOf(api.GET('/v1/admin/tenants/{tenant}', { params: { path } }));
    const failures: OperatorSchemas['LoadFailure'][] = [];
    const agents = await listAll(
      (query) => api.GET('/v1/admin/tenants/{tenant}/agents', { params: { path, query } }),
      (page) => {
        failures.push(...(page.load_failures ?? []));
        return page.agents;
      },
    );
    return { agents, failures, defaultAgent: found.default_agent };
  });
  const records = agents.map(({ id, slug, name, description, version, runtime, origin, enabled }) => ({
    id,
    slug,
    name,
    description,
    version,
    runtime,
    origin,
    enabled,
    default: slug === defaultAgent,
  }));
  const rows = records.map((agent) => [
    agent.slug,
    agent.name,
    agent.runtime,
    agent.origin,
    agent.default ? 'yes' : '',
    oneLine(agent.description, 60),
  ]);
  if (options.json) printValue(terminal, records);
  else printTable(terminal, TITLES, rows, '');
  for (const failure of failures) terminal.err(failureText(failure));
}

/** Add an agent to the catalog of a tenant. */
export async function createAgent(cli: Cli, options: CreateAgentOptions): Promise<void> {
  const { tenant, file, json, slug } = options;
  const raw = await readAgentFile(file);
  await ofFile(file, () => parseAgentDocument(raw));
  const params = { path: { tenant } };
  const body = { ...(raw as OperatorSchemas['AgentDocument']), ...(slug && { slug }) };
  const created = await withOperatorApi(cli, options, async (api) => {
    // The tenant comes first: an unknown tenant is not an error of the file.
    await answerOf(api.GET('/v1/admin/tenants/{tenant}', { params }));
    return ofFile(file, () => answerOf(api.POST('/v1/admin/tenants/{tenant}/agents', { params, body })));
  });
  const record = recordOf(created.agent);
  if (json) return void printValue(cli.terminal, record);
  cli.terminal.out(
    `Agent ${record.slug} is in the catalog of ${tenant}: npx baton send ${record.slug} "hello"`,
  );
}

/** Take an agent out of the catalog of a tenant. */
export async function removeAgent(cli: Cli, name: string, options: TenantAgentsOptions): Promise<void> {
  const { tenant, json } = options;
  const params = { path: { tenant, agent: name } };
  const agent = await withOperatorApi(cli, options, (api) =>
    answerOf(api.DELETE('/v1/admin/tenants/{tenant}/agents/{agent}', { params })),
  ).catch(inOwnWords);
  if (json) printValue(cli.terminal, recordOf(agent));
  else cli.terminal.out(`Agent ${agent.slug} is removed from the catalog of ${tenant}.`);
}

/** For editors: `# yaml-language-server: $schema=agent.schema.json`. */
export const printSchema = ({ terminal }: Cli): void => printValue(terminal, agentSchema());

/** Without the runtime's settings: they may be confidential. */
const recordOf = ({ id, slug, origin, enabled, definition }: ShownAgent) => {
  const { name, description, version, runtime } = definition;
  return { id, slug, name, description, version, runtime, origin, enabled };
};
