import { type AgentDefinition, assertAgentSlug, parseAgentDefinition, ProtocolError } from '@baton/a2a';
import type { Environment } from '@baton/config';
import { type Logger, messageOf } from '@baton/telemetry';
import { readFile, readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Document, LineCounter, Node } from 'yaml';
import { agentCode } from './agent-code.js';
import { assertConfig } from './runtime-configs.js';
import { checkExecutors } from './runtimes/executor/check-executors.js';
import { checkOptions, codeSettings } from './runtimes/executor/executor-config.js';
import type { LoadFault } from './runtimes/executor/protocol.js';

/** The file with an agent's definition, beside its module. */
const AGENT_FILE = 'agent.yaml';

/** An agent of the operator, read from its folder. */
export interface InstalledAgent {
  /** The folder's name. */
  slug: string;
  definition: AgentDefinition;
  /** Slugs of the tenants that can use it; null = all. */
  tenants: string[] | null;
  /** Hash of its code (`agentCode`). */
  code: string;
}

/** Why an agent of the operator is not there, or one reason of several. */
export interface LoadFailure {
  /** The folder's name; null: the directory itself cannot be read. */
  slug: string | null;
  /** Relative to `BATON_AGENTS_DIR`. */
  file: string;
  line: number | null;
  /** Names the field, if one is wrong. */
  reason: string;
  /** Slugs of the tenants that could use the agent; null = all. Empty if that cannot be known: only operators may see it. */
  tenants: string[] | null;
}

/**
 * Reads all agents of a directory, and loads each module once in a child process to check it. Broken agents are left
 * out and do not affect the others. Never rejects.
 *
 * @param directory absolute path; each folder in it is an agent, and its name is the slug
 * @returns the agents that can run, and the faults of the others
 */
export async function loadInstalledAgents(
  directory: string,
  environment: Environment,
  logger: Logger,
): Promise<{ agents: InstalledAgent[]; failures: LoadFailure[] }> {
  const read: InstalledAgent[] = [];
  const failures: LoadFailure[] = [];
  try {
    for (const slug of await agentFolders(directory)) {
      const found = await readAgent(directory, slug);
      if (Array.isArray(found)) failures.push(...found);
      else read.push(found);
    }
    const folders = read.map(({ slug, definition }) => {
      const { module, kind } = codeSettings(definition);
      return { folder: join(directory, slug), module, kind };
    });
    const faults = await checkExecutors(folders, checkOptions(environment, logger));
    const agents = read.filter(({ slug, tenants }, i) => {
      const fault = faults[i];
      if (fault) failures.push(failureOf(directory, slug, tenants, fault));
      return fault === undefined;
    });
    return { agents, failures };
  } catch (error) {
    const reason = `BATON_AGENTS_DIR cannot be read: ${messageOf(error)}`;
    return { agents: [], failures: [...failures, { slug: null, file: '', line: null, reason, tenants: [] }] };
  }
}

/** @param fault its file is relative to the agent's folder */
export const failureOf = (
  directory: string,
  slug: string,
  tenants: string[] | null,
  { file, line, reason }: LoadFault,
): LoadFailure => ({
  slug,
  tenants,
  line: line ?? null,
  file: join(slug, file),
  // Tenants read it, so it does not name the operator's folders.
  reason: reason.replaceAll(join(directory, '/'), ''),
});

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

/** @returns the agent, or all that is wrong in its file */
export async function readAgent(directory: string, slug: string): Promise<InstalledAgent | LoadFailure[]> {
  // The tenants that may read the agent. Until the file is read, none.
  let known: string[] | null = [];
  let lineOf = (_field: string): number | undefined => undefined;
  try {
    assertAgentSlug(slug);
    const { parseDocument, LineCounter } = await import('yaml');
    const lines = new LineCounter();
    const text = await readFile(join(directory, slug, AGENT_FILE), 'utf8');
    const document = parseDocument(text, { lineCounter: lines, prettyErrors: false });
    lineOf = (field) => lineIn(document, lines, field);
    if (document.errors.length > 0) {
      return document.errors.map(({ message, pos: [start] }) =>
        failureOf(directory, slug, known, {
          file: AGENT_FILE,
          line: lines.linePos(start).line,
          reason: message.replace(/[:.]$/, ''),
        }),
      );
    }
    const raw: unknown = document.toJS();
    known = tenantsIn(raw);
    const { tenants = null, ...definition } = parseAgentDefinition(raw);
    if (!['executor', 'llm'].includes(definition.runtime)) {
      throw ProtocolError.invalidParams('runtime', 'must be "executor" or "llm"');
    }
    assertConfig(definition);
    return { slug, definition, tenants, code: await agentCode(directory, slug) };
  } catch (error) {
    return faultsOf(error).map(({ field, reason }) =>
      failureOf(directory, slug, known, { file: AGENT_FILE, line: lineOf(field), reason }),
    );
  }
}

/** The tenants of a definition that may have faults elsewhere. Empty if they are wrong themselves. */
function tenantsIn(raw: unknown): string[] | null {
  if (typeof raw !== 'object' || raw === null) return [];
  const { tenants = null } = raw as { tenants?: unknown };
  if (tenants === null) return null;
  return Array.isArray(tenants) ? tenants.filter((name) => typeof name === 'string') : [];
}

/** The line of a field such as `skills[0].name`, or of the nearest one around it. */
function lineIn(document: Document.Parsed, lines: LineCounter, field: string): number {
  const path = field.split(/[.[\]]+/).flatMap((step) => (step === '' ? [] : [step]));
  for (; path.length > 0; path.pop()) {
    const steps = path.map((step) => (/^\d+$/.test(step) ? Number(step) : step));
    const node = document.getIn(steps, true) as Node | undefined;
    if (node?.range) return lines.linePos(node.range[0]).line;
  }
  return 1;
}

/** Each wrong field, or the error itself. */
function faultsOf(error: unknown): { field: string; reason: string }[] {
  const violations = error instanceof ProtocolError ? (error.detail.violations ?? []) : [];
  if (violations.length === 0) return [{ field: '', reason: messageOf(error) }];
  return violations.map(({ field, description }) => ({ field, reason: `${field}: ${description}` }));
}
