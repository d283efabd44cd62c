import type { TenantSchemas } from '@baton/contract';
import { MAX_LISTED, type ServerOptions } from '../api.js';
import type { Cli } from '../cli.js';
import { parseCount, sinceOf } from '../options.js';
import { formatTimeText, oneLine, printTable, printValue } from '../output.js';
import { taskRecord, tasksClient } from './tasks-client.js';

const TITLES = ['task', 'agent', 'state', 'updated', 'context', 'reason'];
const WAITING_TITLES = ['task', 'agent', 'since', 'expires', 'waits for', 'asked'];

export interface ListOptions extends ServerOptions {
  state?: TenantSchemas['TaskState'];
  agent?: string;
  context?: string;
  since?: string;
  until?: string;
  search?: string;
  parked?: true;
  limit: string;
}

/** `baton tasks list`: the tasks that the token may read, the newest status first. */
export async function listTasks(cli: Cli, options: ListOptions): Promise<void> {
  const { state, agent, context, since, until, search, parked, limit } = options;
  const query = {
    ...(state !== undefined && { state }),
    ...(agent !== undefined && { agent }),
    ...(context !== undefined && { context_id: context }),
    ...(since !== undefined && { since: sinceOf(since).toISOString() }),
    ...(until !== undefined && { until: sinceOf(until, undefined, '--until').toISOString() }),
    ...(search !== undefined && { q: search }),
    ...(parked && { parked: true }),
  };
  const client = tasksClient(cli, options);
  const found = await client.list(query, parseCount('--limit', limit, MAX_LISTED));
  if (options.json) return void printValue(cli.terminal, found.map(taskRecord));
  const slugs = found.length > 0 ? await client.slugs() : new Map<string, string>();
  const row = rowOf(slugs);
  const rows = found.map((task) => (search === undefined ? row(task) : [...row(task), foundIn(task)]));
  const titles = search === undefined ? TITLES : [...TITLES, 'found in'];
  printTable(cli.terminal, titles, rows, 'There are no such tasks.');
}

/** @returns such as `answer: … parcel 4711 is in Bern …` */
function foundIn({ hit, first_message: message = '' }: TenantSchemas['TaskSummary']): string {
  if (!hit) return '';
  const text = hit.in === 'first_message' ? message : (hit.text ?? '');
  const place = hit.in.replace('_', ' ');
  return text === '' ? place : oneLine(`${place}: ${text}`);
}

const rowOf =
  (slugs: ReadonlyMap<string, string>) =>
  ({
    task_id: id,
    agent_id: agent,
    state,
    updated_at: at,
    context_id: context,
    status_message: text = '',
    error_message: error = text,
    parked,
  }: TenantSchemas['TaskSummary']): string[] => [
    id,
    slugs.get(agent) ?? agent,
    parked ? 'parked' : (state ?? '-'),
    formatTimeText(at),
    context,
    parked ? oneLine(parked.problem) : isExplained(state) ? error : '',
  ];

/** `baton tasks waiting`: the tasks that wait for an answer which the token may give. */
export async function listWaitingTasks(cli: Cli, options: ServerOptions & { limit: string }): Promise<void> {
  const client = tasksClient(cli, options);
  const found = await client.list({ answerable: true }, parseCount('--limit', options.limit, MAX_LISTED));
  if (options.json) return void printValue(cli.terminal, found.map(taskRecord));
  const slugs = found.length > 0 ? await client.slugs() : new Map<string, string>();
  const rows = found.flatMap((task) => waitingRows(task, slugs.get(task.agent_id) ?? task.agent_id));
  printTable(cli.terminal, WAITING_TITLES, rows, 'No task waits for you.');
  if (found.length > 0) {
    cli.terminal.err(
      'Answer with: npx baton approvals approve <task>, or npx baton send <agent> "…" --task <task>',
    );
  }
}

/** A row for each call that waits for approval, or one for the question. */
function waitingRows(
  { task_id: id, updated_at: at, approvals = [], status_message: text = '' }: TenantSchemas['TaskSummary'],
  agent: string,
): string[][] {
  if (approvals.length === 0) return [[id, agent, formatTimeText(at), '-', 'answer', oneLine(text)]];
  return approvals.map(({ tool, input, expires_at: expires, agents = [agent] }) => [
    id,
    agents.join(' → '),
    formatTimeText(at),
    formatTimeText(expires),
    'approval',
    oneLine(`${tool} ${JSON.stringify(input)}`),
  ]);
}

/** Whether the text of the status is a reason: of an end that is no success, or of a wait. */
const isExplained = (state: string | undefined): boolean =>
  state !== undefined && !['submitted', 'working', 'completed'].includes(state);
