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

/** The file with an agent's definition, beside its module. */
const AGENT_FILE = 'agent.yaml';

/** An agent of the operator, read from its folder. */
export interface InstalledAgent {
  /** The folder's name. */
  slug: string;
  definition: AgentDefinition;
  /** Slugs of the tenants that can use it; null = all. */
  tenants: string[] | null;
}

/**
 * Reads all agents of a directory, and loads each module once in a child process to check it. Broken agents are left
 * out and do not affect the others. Never rejects.
 *
 * @param directory absolute path; each folder in it is an agent, and its name is the slug
 * @returns the agents that can run, and one sentence with file and field for each broken agent
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

/** Follows symbolic links. Skips `node_modules`, which holds packages that agents share. */
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

/** Throws an Error that starts with the file's path. */
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
