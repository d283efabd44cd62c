import { messageOf } from '@baton/telemetry';
import { diffLines as compareLines } from 'diff';
import { ProtocolError, slugOf } from '@baton/a2a';
import { type WrongField, YamlSource } from '@baton/contract';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { extname, join } from 'node:path';
import { OperatorError } from '../operator-error.js';
import { RefusedError } from '../refused-error.js';
import { UnreachableError } from '../unreachable-error.js';
import type { AgentsClient, Written } from './agents-client.js';
import { agentText } from './agent-text.js';

/** What a file makes of its agent. */
export interface FileChange {
  file: string;
  slug: string;
  outcome: Written['outcome'];
  /** Number of the version that the agent has then. */
  version: number | null;
  /** Lines that change, as `diffLines` writes them. */
  diff: string[];
}

/** A change that the server has validated. */
export interface PlannedChange extends FileChange {
  document: unknown;
  /** What fails when the agent runs. */
  warnings: NonNullable<Written['warnings']>;
  /** What the card should have and the file leaves out. */
  hints: NonNullable<Written['hints']>;
  /** MCP servers that were not asked for their tools. */
  unchecked: NonNullable<Written['unchecked_tools']>;
  /** The version that the change is based on; null = the agent is new. */
  etag: string | null;
}

/**
 * What the files would change, checked by the server file by file; nothing is written. Throws OperatorError with every
 * faulty file and its faults.
 * @param options `checkTools`: the server also asks the MCP servers for the tools that the files name
 */
export async function planChanges(
  client: AgentsClient,
  paths: readonly string[],
  options: { checkTools?: boolean } = {},
): Promise<PlannedChange[]> {
  const plans: PlannedChange[] = [];
  const problems: string[] = [];
  for (const file of agentFilesIn(paths)) {
    try {
      plans.push(await planChange(client, file, plans, options.checkTools === true));
    } catch (error) {
      if (!(error instanceof OperatorError) || !error.message.startsWith(`${file}:`)) throw error;
      problems.push(error.message);
    }
  }
  if (problems.length === 0) return plans;
  throw new OperatorError([...problems, 'Nothing was written.'].join('\n'));
}

/** A line for everything that the server warns of. An agent that is made by another of the files is there in a moment. */
export const warningsOf = (plans: readonly PlannedChange[]): string[] =>
  plans.flatMap(({ file, warnings, hints, unchecked }) => {
    const ofOthers = warnings.filter(({ agent }) => !plans.some(({ slug }) => slug === agent));
    const others = [...hints, ...unchecked];
    if (ofOthers.length + others.length === 0) return [];
    const source = new YamlSource(readText(file));
    const line = ({ field, description }: WrongField): string =>
      `Warning: ${file}:${source.lineOf(field)}: ${field}: ${description}.`;
    return [...ofOthers.map((each) => `${line(each)} It fails when the agent runs.`), ...others.map(line)];
  });

/** Write a planned change, unless the agent was changed since. Throws OperatorError. */
export async function writeChange(client: AgentsClient, plan: PlannedChange): Promise<FileChange> {
  const { file, slug, document, etag, diff } = plan;
  if (plan.outcome === 'unchanged') return { file, slug, diff, outcome: plan.outcome, version: plan.version };
  const { outcome, agent } = await ofFile(file, () => client.put(slug, document, { etag }));
  return { file, slug, outcome, diff, version: agent.version };
}

async function planChange(
  client: AgentsClient,
  file: string,
  others: readonly PlannedChange[],
  checkTools: boolean,
): Promise<PlannedChange> {
  const document = await readAgentFile(file);
  const slug = slugIn(file, document);
  const other = others.find((plan) => plan.slug === slug);
  if (other)
    throw new OperatorError(
      `${file}: slug: "${slug}" is also the slug of ${other.file}: give each agent its own.`,
    );
  const found = await client.find(slug);
  // An own agent hides an agent of the operator. It does not change it.
  const current = found?.agent.origin === 'catalog' ? found : undefined;
  const etag = current?.etag ?? null;
  const put = () => client.put(slug, document, { dryRun: true, checkTools, etag });
  const written = await ofFile(file, put);
  const { outcome, agent, warnings = [], hints = [], unchecked_tools: unchecked = [] } = written;
  const diff = diffLines(current ? agentText(current.agent) : '', agentText(agent));
  return { file, slug, document, etag, outcome, diff, warnings, hints, unchecked, version: agent.version };
}

/** The slug in the file, or the one that its name suggests. */
function slugIn(file: string, document: unknown): string {
  const { slug, name } = (document ?? {}) as { slug?: unknown; name?: unknown };
  if (typeof slug === 'string') return slug;
  const suggested = typeof name === 'string' ? slugOf(name) : '';
  if (suggested !== '') return suggested;
  throw new OperatorError(`${file}: slug: is missing: give the agent a name for its URL, such as my-agent.`);
}

const ENDINGS = new Set(['.yaml', '.yml', '.json']);

/** The content of an agent's file, not checked yet. Throws OperatorError that names every fault with its line. */
export async function readAgentFile(file: string): Promise<unknown> {
  const source = new YamlSource(await ofFile(file, () => readText(file)));
  if (source.faults.length === 0) return source.value;
  throw new OperatorError(source.faults.map(({ line, text }) => `${file}:${line}: ${text}.`).join('\n'));
}

/** The files that paths name: a folder stands for the agent files in it, by name. Throws OperatorError. */
export function agentFilesIn(paths: readonly string[]): string[] {
  const files = paths.flatMap((path) => {
    if (!statSync(path, { throwIfNoEntry: false })?.isDirectory()) return [path];
    const found = readdirSync(path).filter((name) => ENDINGS.has(extname(name)));
    if (found.length === 0) throw new OperatorError(`${path}: there is no .yaml, .yml or .json file in it.`);
    return found.sort().map((name) => join(path, name));
  });
  return [...new Set(files)];
}

/** Errors of `work` become a line for each fault, which begins with the file. */
export async function ofFile<T>(file: string, work: () => T | Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    // A server that is away is not an error of the file.
    if (error instanceof UnreachableError) throw error;
    const fields = fieldsOf(error);
    const source = fields.length > 0 ? new YamlSource(readText(file)) : undefined;
    const faults = source
      ? fields.map(({ field, description }) => `${file}:${source.lineOf(field)}: ${field}: ${description}.`)
      : [`${file}: ${reasonOf(error).replace(/[:.]$/, '')}.`];
    throw new OperatorError(faults.join('\n'), { cause: error });
  }
}

/** The wrong fields of the file, found by the server or, without one, by this program. */
function fieldsOf(error: unknown): readonly WrongField[] {
  if (error instanceof RefusedError) return error.fields;
  return error instanceof ProtocolError ? (error.detail.violations ?? []) : [];
}

function reasonOf(error: unknown): string {
  if (error instanceof RefusedError) return error.reason;
  return messageOf(error);
}

function readText(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    const reason =
      code === 'ENOENT' ? 'there is no such file' : `it cannot be read (${code ?? 'unknown reason'})`;
    throw new Error(reason, { cause: error });
  }
}

/** Unchanged lines that are shown around changed ones. */
const CONTEXT = 2;
const SIGNS = { added: '+', removed: '-', unchanged: ' ' } as const;

/**
 * The changes from one text to another, line by line: `- ` before a removed line, `+ ` before an added one, some
 * unchanged lines around them, `…` for the rest. Empty if the texts are the same.
 */
export function diffLines(before: string, after: string): string[] {
  const lines = compareLines(before, after).flatMap(({ value, added, removed }) => {
    const sign = SIGNS[added ? 'added' : removed ? 'removed' : 'unchanged'];
    return value
      .replace(/\n$/, '')
      .split('\n')
      .map((text) => ({ sign, text }));
  });
  const isNear = (at: number): boolean =>
    lines.slice(Math.max(0, at - CONTEXT), at + CONTEXT + 1).some(({ sign }) => sign !== ' ');
  const shown = lines.map(({ sign, text }, at) => (isNear(at) ? `${sign} ${text}` : '…'));
  const folded = shown.filter((line, at) => line !== '…' || shown[at - 1] !== '…');
  return folded.every((line) => line === '…') ? [] : folded;
}
