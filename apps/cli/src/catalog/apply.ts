import { slugOf } from '@baton/a2a';
import { agentFilesIn, ofFile, readAgentFile } from '../agent-file.js';
import { OperatorError } from '../operator-error.js';
import { agentText } from './agent-text.js';
import type { AgentsClient, Written } from './agents-client.js';
import { diffLines } from './line-diff.js';

/** What a file makes of its agent. */
export interface Change {
  file: string;
  slug: string;
  outcome: Written['outcome'];
  /** Number of the version that the agent has then. */
  version: number | null;
  /** Lines that change, as `diffLines` writes them. */
  diff: string[];
}

/** A change that the server has found to be right. */
export interface PlannedChange extends Change {
  document: unknown;
  /** What the change goes on from; null = the agent is new. */
  etag: string | null;
}

/**
 * What the files would change, checked by the server file by file; nothing is written. Throws OperatorError that
 * names every file that is wrong, and what is wrong in it.
 */
export async function planChanges(client: AgentsClient, paths: readonly string[]): Promise<PlannedChange[]> {
  const plans: PlannedChange[] = [];
  const problems: string[] = [];
  for (const file of agentFilesIn(paths)) {
    try {
      plans.push(await planChange(client, file, plans));
    } catch (error) {
      if (!(error instanceof OperatorError) || !error.message.startsWith(`${file}: `)) throw error;
      problems.push(error.message);
    }
  }
  if (problems.length === 0) return plans;
  throw new OperatorError([...problems, 'Nothing was written.'].join('\n'));
}

/** Write a planned change, unless somebody else has changed the agent since. Throws OperatorError. */
export async function writeChange(client: AgentsClient, plan: PlannedChange): Promise<Change> {
  const { file, slug, document, etag, diff } = plan;
  if (plan.outcome === 'unchanged') return { file, slug, diff, outcome: plan.outcome, version: plan.version };
  const { outcome, agent } = await ofFile(file, () => client.put(slug, document, { etag }));
  return { file, slug, outcome, diff, version: agent.version };
}

async function planChange(
  client: AgentsClient,
  file: string,
  others: readonly PlannedChange[],
): Promise<PlannedChange> {
  const document = await readAgentFile(file);
  const slug = slugIn(file, document);
  const twin = others.find((other) => other.slug === slug);
  if (twin)
    throw new OperatorError(`${file}: slug: "${slug}" is that of ${twin.file}, too: give each its own.`);
  const found = await client.find(slug);
  // An agent of the operator's is hidden by one of the tenant's own, not changed.
  const current = found?.agent.origin === 'catalog' ? found : undefined;
  const etag = current?.etag ?? null;
  const { outcome, agent } = await ofFile(file, () => client.put(slug, document, { dryRun: true, etag }));
  const diff = diffLines(current ? agentText(current.agent) : '', agentText(agent));
  return { file, slug, document, etag, outcome, diff, version: agent.version };
}

/** What the file says, or what the name in it suggests. */
function slugIn(file: string, document: unknown): string {
  const { slug, name } = (document ?? {}) as { slug?: unknown; name?: unknown };
  if (typeof slug === 'string') return slug;
  const suggested = typeof name === 'string' ? slugOf(name) : '';
  if (suggested !== '') return suggested;
  throw new OperatorError(`${file}: slug: is missing: give the agent a name for its URL, such as my-agent.`);
}
