import {
  type AgentDefinition,
  type ParsedAgentDefinition,
  assertAgentSlug,
  parseAgentDefinition,
} from '@baton/a2a';
import type { Environment } from '@baton/config';
import type { Logger } from '@baton/telemetry';
import { readFile, readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { assertConfig } from './runtime-configs.js';
import { checkExecutors } from './runtimes/executor/check-executors.js';
import { checkOptions, executorConfig } from './runtimes/executor/executor-config.js';

/** The file that describes an agent, beside its module. */
const AGENT_FILE = 'agent.yaml';

/** An agent of the operator's, read from its folder. */
export interface InstalledAgent {
  /** The folder's name. */
  slug: string;
  definition: AgentDefinition;
  /** Slugs of the tenants that may use it; null = all. */
  tenants: string[] | null;
}

/**
 * Read every agent of a folder of agents, and load its module once, in a process beside, to see that it can run. A
 * broken agent is left out and keeps nobody from working. Never rejects.
 *
 * @param directory absolute path; each folder in it is an agent, its name the agent's slug
 * @returns the agents that can run, and for each of the others a sentence naming file and field
 */
export async function loadInstalledAgents(
  directory: string,
  environment: Environment,
  logger: Logger,
): Promise<{ agents: InstalledAgent[]; errors: string[] }> {
  const read: InstalledAgent[] = [];
  const errors: string[] = [];
  try {
    for (const slug of await agentFolders(directory)) {
      await readAgent(join(directory, slug), slug).then(
        (agent) => read.push(agent),
        (error: unknown) => errors.push(reasonOf(error)),
      );
    }
    const folders = read.map(({ slug, definition: { config } }) => ({
      folder: join(directory, slug),
      module: executorConfig.parse(config).module,
    }));
    const problems = await checkExecutors(folders, checkOptions(environment, logger));
    errors.push(...problems.filter((problem) => problem !== undefined));
    return { agents: read.filter((_, i) => problems[i] === undefined), errors };
  } catch (error) {
    return { agents: [], errors: [...errors, `BATON_AGENTS_DIR can not be read: ${reasonOf(error)}`] };
  }
}

/** Links count as what they lead to; `node_modules` is where agents keep what they share. */
async function agentFolders(directory: string): Promise<string[]> {
  const names = (await readdir(directory)).filter((name) => !name.startsWith('.') && name !== 'node_modules');
  const isFolder = await Promise.all(names.map((name) => isDirectory(join(directory, name))));
  return names.filter((_, i) => isFolder[i]).sort();
}

const isDirectory = (path: string): Promise<boolean> =>
  stat(path).then(
    (found) => found.isDirectory(),
    () => false,
  );

async function readAgent(folder: string, slug: string): Promise<InstalledAgent> {
  const { tenants = null, ...definition } = await readAgentFile(join(folder, AGENT_FILE), slug);
  return { slug, definition, tenants };
}

/** Throws an Error that begins with the file's path. */
async function readAgentFile(file: string, slug: string): Promise<ParsedAgentDefinition> {
  try {
    assertAgentSlug(slug);
    const { parse } = await import('yaml');
    const definition = parseAgentDefinition(parse(await readFile(file, 'utf8')));
    if (definition.runtime !== 'executor') throw new Error('runtime: must be "executor"');
    assertConfig(definition);
    return definition;
  } catch (error) {
    throw new Error(`${file}: ${reasonOf(error)}`, { cause: error });
  }
}

const reasonOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));
