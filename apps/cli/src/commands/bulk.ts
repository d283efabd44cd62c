import type { TenantSchemas } from '@baton/contract';
import { type Command, Argument } from 'commander';
import { setTimeout as delay } from 'node:timers/promises';
import { answerOf, listAll, type ServerOptions, tenantApi } from '../api.js';
import { type Cli, JSON_OPTION } from '../cli.js';
import { formatTime, oneLine, printFields, printTable, printValue } from '../output.js';
import { TOKEN_OPTION, URL_OPTION } from '../server.js';
import { UsageError } from '../usage-error.js';
import { parseCount, sinceOf } from '../options.js';

const ACTIONS = ['cancel', 'resume', 'continue', 'send-again', 'delete'] as const;
const TITLES = ['id', 'action', 'state', 'found', 'done', 'skipped', 'failed', 'begun'];
const TASK_TITLES = ['task', 'agent', 'state', 'updated', 'first message'];
/** Ten pages of the API: the command reads them one after the other. */
const MAX_LISTED = 1_000;
/** Between two reads of the progress, which a person watches. */
const WATCH_MS = 1_000;

type BulkOperation = TenantSchemas['BulkOperation'];

interface BeginOptions extends ServerOptions {
  agent?: string;
  context?: string;
  state?: TenantSchemas['TaskState'];
  since?: string;
  until?: string;
  owner?: string;
  error?: string;
  agentVersion?: string;
  parked?: true;
  all?: true;
  dryRun?: true;
  watch?: true;
}

/** `baton bulk …`: operations on many tasks of a tenant. */
export function addBulkCommands(program: Command, cli: Cli): void {
  const bulk = program.command('bulk').description('operations on many tasks; needs a token of the tenant');
  const add = (name: string, description: string): Command =>
    bulk
      .command(name)
      .description(description)
      .option(...URL_OPTION)
      .option(...TOKEN_OPTION)
      .option(...JSON_OPTION);

  add('begin', 'begin an operation on all tasks that are there now and match. Workers do it')
    .addArgument(new Argument('<action>', 'what is done to each task').choices(ACTIONS))
    .option('--agent <agent>', 'only tasks of this agent: its slug or id')
    .option('--agent-version <number>', 'only tasks whose last attempt has run this version of the agent')
    .option('--context <id>', 'only tasks of this context; needs --agent')
    .option('--state <state>', 'only tasks in this state, such as failed or input-required')
    .option('--error <text>', 'only tasks with this text in their error')
    .option('--since <when>', 'only tasks with a status since then: 2h, 7d, or a time')
    .option('--until <when>', 'only tasks with a status before then: 1h, 1d, or a time')
    .option('--owner <key>', 'only tasks that this principal has made')
    .option('--parked', 'only tasks that wait for other code of their agent')
    .option('--all', 'all tasks that the action is for, without any of the options before')
    .option('--dry-run', 'only show what would be done')
    .option('--watch', 'show how far it is until it has ended')
    .action((action: BulkOperation['action'], options: BeginOptions) => begin(cli, action, options));
  add('list', 'list the operations, the newest first')
    .option('--limit <number>', `maximum number of operations, up to ${MAX_LISTED}`, '20')
    .action((options: ServerOptions & { limit: string }) => list(cli, options));
  add('show', 'show how far an operation is, and which tasks have failed')
    .argument('<id>', 'id of the operation')
    .option('--watch', 'show it until it has ended')
    .action((id: string, options: ServerOptions & { watch?: true }) => show(cli, id, options));
  add('cancel', 'end an operation. What is done stays done')
    .argument('<id>', 'id of the operation')
    .action((id: string, options: ServerOptions) => cancel(cli, id, options));
}

async function begin(cli: Cli, action: BulkOperation['action'], options: BeginOptions): Promise<void> {
  const filter = filterOf(options);
  if (Object.keys(filter).length === 0 && !options.all) {
    throw new UsageError('Say which tasks, for instance with --agent or --state, or give --all.');
  }
  const api = tenantApi(cli, options);
  const body = { action, filter, dry_run: options.dryRun ?? false };
  const answer = await answerOf(api.POST('/v1/bulk-operations', { body }));
  if ('dry_run' in answer) {
    if (options.json) return void printValue(cli.terminal, answer);
    const rows = answer.tasks.map((task) => [
      task.task_id,
      task.agent_id,
      task.state ?? '–',
      task.updated_at === undefined ? '–' : formatTime(new Date(task.updated_at)),
      oneLine(task.first_message ?? ''),
    ]);
    printTable(cli.terminal, TASK_TITLES, rows, 'No task matches.');
    const more = answer.complete ? '' : ' at least';
    cli.terminal.out(`${action}:${more} ${answer.found} tasks. Nothing is done: leave out --dry-run.`);
    return;
  }
  if (options.watch) return show(cli, answer.id, options);
  if (options.json) return void printValue(cli.terminal, answer);
  cli.terminal.out(
    `Operation ${answer.id} has begun. See how far it is: baton bulk show ${answer.id} --watch`,
  );
}

function filterOf(options: BeginOptions) {
  const { agent, context, state, since, until, owner, error, agentVersion, parked } = options;
  return {
    ...(agent !== undefined && { agent }),
    ...(context !== undefined && { context_id: context }),
    ...(state !== undefined && { state }),
    ...(since !== undefined && { since: sinceOf(since).toISOString() }),
    ...(until !== undefined && { until: sinceOf(until, Date.now(), '--until').toISOString() }),
    ...(owner !== undefined && { owner }),
    ...(error !== undefined && { error }),
    ...(agentVersion !== undefined && {
      version: parseCount('--agent-version', agentVersion, 1_000_000_000),
    }),
    ...(parked && { parked }),
  };
}

async function list(cli: Cli, options: ServerOptions & { limit: string }): Promise<void> {
  const max = parseCount('--limit', options.limit, MAX_LISTED);
  const api = tenantApi(cli, options);
  const all = await listAll(
    (query) => api.GET('/v1/bulk-operations', { params: { query } }),
    (page) => page.bulk_operations,
    max,
  );
  const none = 'No operations yet: baton bulk begin cancel --agent … --dry-run';
  if (options.json) printValue(cli.terminal, all);
  else printTable(cli.terminal, TITLES, all.map(rowOf), none);
}

async function show(cli: Cli, id: string, options: ServerOptions & { watch?: true }): Promise<void> {
  const api = tenantApi(cli, options);
  const read = () => answerOf(api.GET('/v1/bulk-operations/{id}', { params: { path: { id } } }));
  let shown = '';
  let found = await read();
  while (options.watch && found.state === 'running') {
    const line = progressOf(found);
    if (line !== shown && !options.json) cli.terminal.out(line);
    shown = line;
    await delay(WATCH_MS);
    found = await read();
  }
  if (options.json) return void printValue(cli.terminal, found);
  printFields(
    cli.terminal,
    [
      ['id', found.id],
      ['action', found.action],
      ['filter', JSON.stringify(found.filter)],
      ['state', found.waits_for === null ? found.state : `${found.state}, waits: ${found.waits_for}`],
      ['tasks', progressOf(found)],
      ['begun', `${formatTime(new Date(found.created_at))} by ${found.created_by}`],
      ['ended', found.finished_at === null ? '–' : formatTime(new Date(found.finished_at))],
    ],
    7,
  );
  if (found.failures.length === 0) return;
  const rows = found.failures.map(({ task_id: task, reason }) => [task, oneLine(reason)]);
  printTable(cli.terminal, ['failed', 'reason'], rows, '');
}

async function cancel(cli: Cli, id: string, options: ServerOptions): Promise<void> {
  const params = { path: { id } };
  const found = await answerOf(tenantApi(cli, options).POST('/v1/bulk-operations/{id}/cancel', { params }));
  if (options.json) printValue(cli.terminal, found);
  else cli.terminal.out(`Operation ${id} is canceled: ${progressOf(found)}.`);
}

const progressOf = ({ found, done, skipped, failed }: BulkOperation): string =>
  `${found} found, ${done} done, ${skipped} skipped, ${failed} failed`;

const rowOf = (one: BulkOperation): string[] => [
  one.id,
  one.action,
  one.waits_for === null ? one.state : `${one.state} (waits)`,
  ...[one.found, one.done, one.skipped, one.failed].map(String),
  formatTime(new Date(one.created_at)),
];
