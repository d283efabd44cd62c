import { type Agent, parseAgentDocument } from '@baton/a2a';
import { agentSchema, BUILTIN_AGENTS } from '@baton/agents';
import { ComputePool } from '@baton/compute';
import { OPERATOR_ACTOR, type Tenant } from '@baton/database';
import { Catalog } from '@baton/tasks';
import { Logger } from '@baton/telemetry';
import type { Cli } from '../cli.js';
import { oneLine, printJson, printTable } from '../output.js';
import { requireTenant, UNTOLD, withMessaging, withPlatform } from '../platform.js';
import { ofFile, readAgentFile } from './files.js';

const AUTHOR = { by: 'operator', actor: OPERATOR_ACTOR } as const;

const TITLES = ['slug', 'name', 'runtime', 'origin', 'default', 'description'];

export interface OperatorOptions {
  tenant: string;
  json?: boolean;
}

export interface CreateOptions extends OperatorOptions {
  file: string;
  slug?: string;
}

/** The agents that a tenant can call. */
export async function listAgents(
  { source, terminal }: Cli,
  { tenant, json }: OperatorOptions,
): Promise<void> {
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

/** Add an agent to the catalog of a tenant. */
export async function createAgent(cli: Cli, { tenant, file, json, slug }: CreateOptions): Promise<void> {
  const raw = await readAgentFile(file);
  const document = await ofFile(file, () => parseAgentDocument(raw));
  const { entry } = await asOperator(cli, tenant, (catalog, { id: tenantId }) =>
    ofFile(file, () => catalog.create({ ...AUTHOR, tenantId }, { ...document, ...(slug && { slug }) })),
  );
  if (json) printJson(cli.terminal, recordOf(entry));
  else {
    cli.terminal.out(
      `Agent ${entry.slug} is in the catalog of ${tenant}: npx baton send ${entry.slug} "hello"`,
    );
  }
}

/** Take an agent out of the catalog of a tenant. */
export async function removeAgent(cli: Cli, name: string, { tenant, json }: OperatorOptions): Promise<void> {
  const agent = await asOperator(cli, tenant, (catalog, { id: tenantId }) =>
    catalog.remove({ ...AUTHOR, tenantId }, name),
  );
  if (json) printJson(cli.terminal, recordOf(agent));
  else cli.terminal.out(`Agent ${agent.slug} is removed from the catalog of ${tenant}.`);
}

/** For editors: `# yaml-language-server: $schema=agent.schema.json`. */
export const printSchema = ({ terminal }: Cli): void => printJson(terminal, agentSchema());

/** Without the runtime's settings: they may be confidential. */
const recordOf = (agent: Partial<Pick<Agent, 'id'>> & Omit<Agent, 'id'>) => {
  const { id, slug, origin, status } = agent;
  const { name, description, version, runtime } = agent.definition;
  return { id, slug, name, description, version, runtime, origin, enabled: status === undefined };
};

/** Do `work` on the agents of a tenant as the operator does, in the database. Every process is told. */
export function asOperator<T>(
  { source, terminal }: Cli,
  slug: string,
  work: (catalog: Catalog, tenant: Tenant) => Promise<T>,
): Promise<T> {
  return withPlatform(source, async ({ environment, tenants, agents, entries, secrets }) => {
    const tenant = await requireTenant(tenants, slug);
    return withMessaging(environment, async (messaging, answers) => {
      const pool = new ComputePool({
        threads: environment.computeThreads,
        timeoutMs: environment.computeTimeoutMs,
      });
      try {
        const catalog = new Catalog(entries, agents, tenants, secrets, messaging, Logger.silent(), pool);
        const done = await work(catalog, tenant);
        if (!answers) terminal.err(UNTOLD);
        return done;
      } finally {
        await pool.close();
      }
    });
  });
}
