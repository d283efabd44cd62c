import { type Agent, parseAgentDocument } from '@baton/a2a';
import { agentSchema, BUILTIN_AGENTS } from '@baton/agents';
import { ComputePool } from '@baton/compute';
import { agentSummary, type AgentSummary, OPERATOR_ACTOR, type Tenant, WorkerStore } from '@baton/database';
import { Catalog, LIVE_LEASES } from '@baton/tasks';
import { Logger } from '@baton/telemetry';
import type { Cli } from '../cli.js';
import { oneLine, printValue, printTable } from '../output.js';
import { type OperatorOptions as TargetOptions, overAdminApi } from '../operator/admin-target.js';
import { requireTenant, UNTOLD, withDatabase, withMessaging, withPlatform } from '../platform.js';
import {
  failureText,
  type ListedAgent,
  readLoadFailures,
  type ShownAgent,
  type Written,
} from './agents-client.js';
import { ofFile, readAgentFile } from './files.js';

const AUTHOR = { by: 'operator', actor: OPERATOR_ACTOR } as const;

const AGENTS_A_PAGE = 500;
const TITLES = ['slug', 'name', 'runtime', 'origin', 'default', 'description'];

export interface OperatorOptions extends TargetOptions {
  tenant: string;
  json?: boolean;
}

export interface CreateOptions extends OperatorOptions {
  file: string;
  slug?: string;
}

/** The agents that a tenant can call. */
export async function listAgents(cli: Cli, options: OperatorOptions): Promise<void> {
  const { terminal } = cli;
  const remote = overAdminApi(cli, options, async (api, path) => {
    const { default_agent: defaultAgent } = await api.call<{ default_agent: string }>('GET', path);
    const listed = await api.list<ListedAgent>(`${path}/agents`, 'agents');
    return { agents: listed, failures: await readLoadFailures(api, `${path}/agents`), defaultAgent };
  });
  const { agents, failures, defaultAgent } = await (remote ?? readAgents(cli, options));
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

/** The agents of a tenant in the database, without their definitions. */
async function readAgents({ source }: Cli, { tenant }: OperatorOptions) {
  return withDatabase(source, async ({ database, ...platform }) => {
    const { id, defaultAgent } = await requireTenant(platform.tenants, tenant);
    const found: AgentSummary[] = BUILTIN_AGENTS.map(agentSummary);
    for (let after: string | undefined, isMore = true; isMore;) {
      const page = await platform.agents.page(id, { limit: AGENTS_A_PAGE, after });
      found.push(...page);
      after = page.at(-1)?.slug;
      isMore = page.length === AGENTS_A_PAGE;
    }
    const agents = found.map(({ status, version = null, ...agent }) => ({
      ...agent,
      version,
      enabled: status === undefined,
    }));
    const liveMs = platform.environment.leaseMs * LIVE_LEASES;
    const failures = (await new WorkerStore(database).loadFailures(id, liveMs)).map(
      ({ slug, tenants: _, ...failure }) => ({ agent: slug, ...failure }),
    );
    return { agents, failures, defaultAgent };
  });
}

/** Add an agent to the catalog of a tenant. */
export async function createAgent(cli: Cli, options: CreateOptions): Promise<void> {
  const { tenant, file, json, slug } = options;
  const raw = await readAgentFile(file);
  const document = await ofFile(file, () => parseAgentDocument(raw));
  const named = slug && { slug };
  const remote = overAdminApi(cli, options, async (api, path) => {
    // The tenant comes first: one that is unknown is no error of the file.
    await api.call('GET', path);
    const body = { ...(raw as object), ...named };
    const { agent } = await ofFile(file, () => api.call<Written>('POST', `${path}/agents`, body));
    return shownRecord(agent);
  });
  const created = await (remote ??
    asOperator(cli, tenant, async (catalog, { id: tenantId }) => {
      const author = { ...AUTHOR, tenantId };
      return recordOf((await ofFile(file, () => catalog.create(author, { ...document, ...named }))).entry);
    }));
  if (json) printValue(cli.terminal, created);
  else {
    cli.terminal.out(
      `Agent ${created.slug} is in the catalog of ${tenant}: npx baton send ${created.slug} "hello"`,
    );
  }
}

/** Take an agent out of the catalog of a tenant. */
export async function removeAgent(cli: Cli, name: string, options: OperatorOptions): Promise<void> {
  const { tenant, json } = options;
  const remote = overAdminApi(cli, options, async (api, path) =>
    shownRecord(await api.call<ShownAgent>('DELETE', `${path}/agents/${encodeURIComponent(name)}`)),
  );
  const agent = await (remote ??
    asOperator(cli, tenant, async (catalog, { id: tenantId }) =>
      recordOf(await catalog.remove({ ...AUTHOR, tenantId }, name)),
    ));
  if (json) printValue(cli.terminal, agent);
  else cli.terminal.out(`Agent ${agent.slug} is removed from the catalog of ${tenant}.`);
}

/** For editors: `# yaml-language-server: $schema=agent.schema.json`. */
export const printSchema = ({ terminal }: Cli): void => printValue(terminal, agentSchema());

/** Without the runtime's settings: they may be confidential. */
const recordOf = (agent: Partial<Pick<Agent, 'id'>> & Omit<Agent, 'id'>) => {
  const { id, slug, origin, status } = agent;
  const { name, description, version, runtime } = agent.definition;
  return { id, slug, name, description, version, runtime, origin, enabled: status === undefined };
};

/** The same of an agent that the server shows. */
const shownRecord = ({ id, slug, origin, enabled, definition }: ShownAgent) => {
  const { name, description, version, runtime } = definition;
  return { id, slug, name, description, version, runtime, origin, enabled };
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
