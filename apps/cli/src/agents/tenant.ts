import type { TenantSchemas } from '@baton/contract';
import type { Cli } from '../cli.js';
import { NotFoundError } from '../not-found-error.js';
import { OperatorError } from '../operator-error.js';
import { formatTime, oneLine, printValue, printTable } from '../output.js';
import { type ServerOptions, tenantApi } from '../api.js';
import { AgentsClient, type Written } from './agents-client.js';
import { agentText, documentOf } from './agent-text.js';
import { failureText } from './load-failure.js';
import { type FileChange, planChanges, readAgentFile, warningsOf, writeChange } from './files.js';

const TITLES = ['slug', 'name', 'runtime', 'origin', 'version', 'enabled', 'description'];
const VERSION_TITLES = ['version', 'enabled', 'written', 'by'];
const OPEN_TITLES = ['begun with', 'current', 'open tasks', 'oldest'];
/** Exit code of `apply --dry-run --exit-code` where something would change. */
const WOULD_CHANGE = 2;

export interface ApplyOptions extends ServerOptions {
  file: string[];
  dryRun?: boolean;
  checkTools?: boolean;
  exitCode?: boolean;
}

const clientOf = (cli: Cli, options: ServerOptions): AgentsClient =>
  new AgentsClient(tenantApi(cli, options));

/** Create or change the agents of the files. Writes nothing unless every file is valid. */
export async function applyFiles(cli: Cli, options: ApplyOptions): Promise<void> {
  const { terminal } = cli;
  const client = clientOf(cli, options);
  const plans = await planChanges(client, options.file, options);
  for (const warning of warningsOf(plans)) terminal.err(warning);
  const changes: FileChange[] = [];
  for (const plan of plans) {
    const { document: _, etag: __, warnings: ___, hints: ____, unchecked: _____, ...planned } = plan;
    const change = options.dryRun ? planned : await writeChange(client, plan);
    changes.push(change);
    if (!options.json) terminal.out([titleOf(change, options), ...change.diff.map(indent)].join('\n'));
  }
  if (options.json) printValue(terminal, changes);
  else if (options.dryRun) terminal.err('Nothing was written: this was a dry run.');
  const changed = changes.some(({ outcome }) => outcome !== 'unchanged');
  if (options.dryRun && options.exitCode && changed) throw new OperatorError('', { exitCode: WOULD_CHANGE });
}

const indent = (line: string): string => `  ${line}`;

const WOULD: Readonly<Record<FileChange['outcome'], string>> = {
  created: 'would be created',
  updated: 'would be changed',
  unchanged: 'is unchanged',
};

function titleOf({ slug, outcome, version, file }: FileChange, { dryRun }: ApplyOptions): string {
  if (outcome === 'unchanged' || dryRun) return `Agent ${slug} ${WOULD[outcome]} (${file})`;
  return `Agent ${slug} is ${outcome === 'created' ? 'created' : `changed to version ${version}`} (${file})`;
}

export async function listOwnAgents(cli: Cli, options: ServerOptions): Promise<void> {
  const client = clientOf(cli, options);
  const agents = await client.list();
  const rows = agents.map((agent) => [
    agent.slug,
    agent.name,
    agent.runtime,
    agent.origin,
    versionText(agent),
    agent.enabled ? 'yes' : 'no',
    oneLine(agent.description, 60),
  ]);
  if (options.json) printValue(cli.terminal, agents);
  else printTable(cli.terminal, TITLES, rows, '');
  for (const failure of await client.loadFailures()) cli.terminal.err(failureText(failure));
}

/** Its stable version, and the state of `next`. */
function versionText({ version, next, next_ended: ended }: TenantSchemas['AgentSummary']): string {
  const stable = String(version ?? '-');
  if (next) return `${stable} (next ${next.version}: ${next.share} %)`;
  if (ended) return `${stable} (next ${ended.version} ended: ${ended.failed} of ${ended.runs} runs failed)`;
  return stable;
}

export interface NextOptions extends ServerOptions {
  share: number;
  failures?: number;
  /** File of a new version. */
  file?: string;
  version?: number;
  /** The version that loses the label. Unset: a version without a share replaces only another one without a share. */
  replaces?: number;
}

/** Give a version the label `next`: a stored one, or a new one of a file. */
export async function setNextVersion(cli: Cli, name: string, options: NextOptions): Promise<void> {
  const { share, failures, file, version, replaces } = options;
  const agent = file === undefined ? undefined : ((await readAgentFile(file)) as Record<string, unknown>);
  const body = {
    share,
    ...(failures !== undefined && { failures }),
    ...(version !== undefined && { version }),
    ...(agent && { agent }),
    ...(replaces !== undefined && { replaces }),
  };
  const found = await clientOf(cli, options).setNext(name, body);
  if (options.json) return void printValue(cli.terminal, { slug: found.slug, next: found.next });
  cli.terminal.out(`Version ${found.next?.version} of agent ${found.slug} gets ${share} % of new tasks.`);
}

export async function promoteNext(cli: Cli, name: string, options: ServerOptions): Promise<void> {
  const { slug, version } = await clientOf(cli, options).promoteNext(name);
  if (options.json) printValue(cli.terminal, { slug, version });
  else cli.terminal.out(`Agent ${slug} has the contents of its next version (version ${version}).`);
}

/** @param options `only`: the version; unset: the one that has the label */
export async function withdrawNext(
  cli: Cli,
  name: string,
  options: ServerOptions & { only?: number },
): Promise<void> {
  await clientOf(cli, options).withdrawNext(name, options.only);
  if (options.json) printValue(cli.terminal, { slug: name, next: null });
  else cli.terminal.out(`All new tasks of agent ${name} begin with its stable version.`);
}

/** As a file that can be applied again. */
export async function showAgent(cli: Cli, name: string, options: ServerOptions): Promise<void> {
  const found = await clientOf(cli, options).find(name);
  if (!found) throw noSuchAgent(name);
  if (options.json) printValue(cli.terminal, documentOf(found.agent));
  else cli.terminal.out(agentText(found.agent).trimEnd());
}

export async function listVersions(cli: Cli, name: string, options: ServerOptions): Promise<void> {
  const versions = await clientOf(cli, options).versions(name);
  const rows = versions.map(({ version, enabled, created_at: at, created_by: by, erased_at: erased }) => [
    String(version),
    enabled ? 'yes' : 'no',
    formatTime(new Date(at)),
    erased === null ? by : `${by} (contents erased)`,
  ]);
  if (options.json) printValue(cli.terminal, versions);
  else printTable(cli.terminal, VERSION_TITLES, rows, '');
}

export async function listOpenVersions(cli: Cli, name: string, options: ServerOptions): Promise<void> {
  const found = await clientOf(cli, options).openVersions(name);
  if (options.json) return void printValue(cli.terminal, found);
  const rows = found.versions.map(({ version, code, current, open_tasks: tasks, oldest_at: oldest }) => [
    version === null ? (code ?? '–') : `v${version}`,
    current ? 'yes' : 'no',
    String(tasks),
    formatTime(new Date(oldest)),
  ]);
  printTable(cli.terminal, OPEN_TITLES, rows, 'The agent has no open tasks.');
  if (rows.length > 0 && !found.pinned) {
    cli.terminal.out('They continue with the newest version: the agent does not pin its tasks.');
  }
}

export async function restoreVersion(
  cli: Cli,
  name: string,
  version: string,
  options: ServerOptions,
): Promise<void> {
  report(
    cli,
    await clientOf(cli, options).restore(name, version),
    options,
    `has the contents of version ${version} again`,
  );
}

export async function eraseVersion(
  cli: Cli,
  name: string,
  version: string,
  options: ServerOptions,
): Promise<void> {
  await clientOf(cli, options).eraseVersion(name, version);
  if (options.json) printValue(cli.terminal, { slug: name, version: Number(version), erased: true });
  else cli.terminal.out(`The contents of version ${version} of agent ${name} are erased.`);
}

export async function setEnabled(
  cli: Cli,
  name: string,
  enabled: boolean,
  options: ServerOptions,
): Promise<void> {
  const written = await clientOf(cli, options).setEnabled(name, enabled);
  report(cli, written, options, enabled ? 'is enabled' : 'is disabled; its running tasks finish');
}

export async function deleteAgent(cli: Cli, name: string, options: ServerOptions): Promise<void> {
  await clientOf(cli, options).remove(name);
  if (options.json) printValue(cli.terminal, { slug: name, deleted: true });
  else cli.terminal.out(`Agent ${name} is deleted. Its running tasks finish.`);
}

function report({ terminal }: Cli, { outcome, agent }: Written, { json }: ServerOptions, what: string): void {
  if (json) printValue(terminal, { slug: agent.slug, outcome, version: agent.version });
  else terminal.out(`Agent ${agent.slug} ${what} (version ${agent.version ?? '-'}).`);
}

const noSuchAgent = (name: string): OperatorError =>
  new NotFoundError(`There is no agent "${name}": npx baton agents list shows all agents.`);
