import type { TenantPaths, TenantSchemas } from '@baton/contract';
import type { Command } from 'commander';
import { type Cli, JSON_OPTION } from '../cli.js';
import { UsageError } from '../usage-error.js';
import { OperatorError } from '../operator-error.js';
import { formatTime, printFields, printValue, printTable } from '../output.js';
import { TOKEN_OPTION, URL_OPTION } from '../server.js';
import { parseCount } from '../options.js';
import { answerOf, listAll, type ServerOptions, tenantApi } from '../api.js';

const TITLES = ['id', 'url', 'agents', 'states', 'state'];
/** Maximum number of deliveries of one list. */
const MAX_LISTED = 10_000;
const DELIVERY_TITLES = ['task', 'state', 'last answer', 'failures', 'next try', 'events waiting'];

interface ChangeOptions extends ServerOptions {
  url?: string;
  to?: string;
  agent?: string[];
  state?: State[];
  all?: boolean;
}

interface DeliveriesOptions extends ServerOptions {
  limit: string;
  task?: string;
}

type Webhook = TenantSchemas['Webhook'];
type PrintedTry = TenantSchemas['WebhookTry'];
type PrintedDelivery = TenantSchemas['WebhookDelivery'];
type WebhookChange = TenantPaths['/v1/webhooks/{id}']['patch']['requestBody']['content']['application/json'];
type State = NonNullable<Webhook['states']>[number];

/** `baton webhooks …`: servers that Baton calls when tasks change their state. */
export function addWebhookCommands(program: Command, cli: Cli): void {
  const webhooks = program
    .command('webhooks')
    .description('servers that Baton calls when tasks change their state; needs a token with `admin`');
  const add = (name: string, description: string, argument?: string): Command => {
    const command = webhooks.command(name).description(description);
    if (argument) command.argument(argument, 'id of the webhook');
    return command
      .option(...URL_OPTION)
      .option(...TOKEN_OPTION)
      .option(...JSON_OPTION);
  };
  const withFilters = (command: Command): Command =>
    command
      .option('--agent <slugs...>', 'only tasks of these agents')
      .option('--state <states...>', 'only these states, e.g. completed failed');
  add('list', 'list the webhooks').action((options: ServerOptions) => list(cli, options));
  withFilters(add('create', 'create a webhook, and print its secret'))
    .argument('<receiver>', 'URL of the receiver')
    .action((receiver: string, options: ChangeOptions) => create(cli, receiver, options));
  add('show', 'show a webhook', '<id>').action((id: string, options: ServerOptions) =>
    show(cli, id, options),
  );
  withFilters(add('set', 'change a webhook', '<id>'))
    .option('--to <receiver>', 'another URL of the receiver')
    .option('--all', 'all agents and all states, unless --agent or --state names some')
    .action((id: string, options: ChangeOptions) => set(cli, id, options));
  add('enable', 'send again', '<id>').action((id: string, options: ServerOptions) =>
    change(cli, id, { enabled: true }, 'is enabled', options),
  );
  add('disable', 'send nothing until it is enabled again', '<id>').action(
    (id: string, options: ServerOptions) => change(cli, id, { enabled: false }, 'is disabled', options),
  );
  add('rotate', 'print a new secret; the old one also signs for a while', '<id>')
    .option('--overlap-hours <hours>', 'how long the old secret stays valid', '24')
    .action((id: string, options: ServerOptions & { overlapHours: string }) => rotate(cli, id, options));
  add('test', 'call the receiver once and show its answer', '<id>').action(
    (id: string, options: ServerOptions) => test(cli, id, options),
  );
  add(
    'deliveries',
    'list the tasks whose events a webhook gets, with the last answer of its receiver',
    '<id>',
  )
    .option('--limit <number>', `maximum number of tasks, up to ${MAX_LISTED}, the newest first`, '50')
    .option('--task <id>', 'only this task, with the newest requests and their answers')
    .action((id: string, options: DeliveriesOptions) => deliveries(cli, id, options));
  add('redeliver', 'deliver the undelivered events again, now', '<id>')
    .option('--task <id>', 'only the events of this task')
    .action((id: string, options: ServerOptions & { task?: string }) => redeliver(cli, id, options));
  add('remove', 'remove a webhook and its undelivered events', '<id>').action(
    (id: string, options: ServerOptions) => remove(cli, id, options),
  );
}

const pathOf = (id: string) => ({ path: { id } });

async function list(cli: Cli, options: ServerOptions): Promise<void> {
  const api = tenantApi(cli, options);
  const all = await listAll(
    (query) => api.GET('/v1/webhooks', { params: { query } }),
    ({ webhooks }) => webhooks,
  );
  const none = 'No webhooks yet: npx baton webhooks create https://…';
  if (options.json) printValue(cli.terminal, all);
  else printTable(cli.terminal, TITLES, all.map(rowOf), none);
}

async function create(cli: Cli, receiver: string, options: ChangeOptions): Promise<void> {
  const body = { url: receiver, agents: options.agent, states: options.state };
  const made = await answerOf(tenantApi(cli, options).POST('/v1/webhooks', { body }));
  if (options.json) return void printValue(cli.terminal, made);
  cli.terminal.out(`Webhook ${made.id} is created. Its secret, which is never shown again:\n${made.secret}`);
}

async function show(cli: Cli, id: string, options: ServerOptions): Promise<void> {
  const found = await answerOf(tenantApi(cli, options).GET('/v1/webhooks/{id}', { params: pathOf(id) }));
  if (options.json) return void printValue(cli.terminal, found);
  const lines = [
    ['id', found.id],
    ['url', found.url],
    ['agents', allOr(found.agents)],
    ['states', allOr(found.states)],
    ['state', stateOf(found)],
    ['created', `${formatTime(new Date(found.created_at))} by ${found.created_by}`],
  ] as const;
  printFields(cli.terminal, lines, 8);
}

async function set(cli: Cli, id: string, options: ChangeOptions): Promise<void> {
  const { to: url, agent: agents = options.all ? null : undefined } = options;
  const patch = { url, agents, states: options.state ?? (options.all ? null : undefined) };
  if (Object.values(patch).every((value) => value === undefined)) {
    throw new UsageError('Nothing to change: give --to, --agent, --state or --all.');
  }
  await change(cli, id, patch, 'is changed', options);
}

async function change(
  cli: Cli,
  id: string,
  patch: WebhookChange,
  done: string,
  options: ServerOptions,
): Promise<void> {
  const changed = await answerOf(
    tenantApi(cli, options).PATCH('/v1/webhooks/{id}', { params: pathOf(id), body: patch }),
  );
  if (options.json) printValue(cli.terminal, changed);
  else cli.terminal.out(`Webhook ${changed.id} ${done}.`);
}

async function rotate(
  cli: Cli,
  id: string,
  options: ServerOptions & { overlapHours: string },
): Promise<void> {
  const hours = Number(options.overlapHours);
  if (!(hours >= 0)) throw new UsageError('--overlap-hours: give a number of hours, such as 24.');
  const body = { overlap_seconds: Math.round(hours * 3600) };
  const made = await answerOf(
    tenantApi(cli, options).POST('/v1/webhooks/{id}/rotate', { params: pathOf(id), body }),
  );
  if (options.json) return void printValue(cli.terminal, made);
  cli.terminal.out(`The new secret of webhook ${made.id}, which is never shown again:\n${made.secret}`);
}

async function test(cli: Cli, id: string, options: ServerOptions): Promise<void> {
  const outcome = await answerOf(
    tenantApi(cli, options).POST('/v1/webhooks/{id}/test', { params: pathOf(id) }),
  );
  const { delivered, status, error, duration_ms: ms } = outcome;
  if (options.json) printValue(cli.terminal, outcome);
  else if (delivered) cli.terminal.out(`The receiver has answered HTTP ${String(status)} after ${ms} ms.`);
  if (delivered) return;
  throw new OperatorError(`The receiver has not taken it: ${error ?? `it answered HTTP ${String(status)}`}.`);
}

async function deliveries(cli: Cli, id: string, options: DeliveriesOptions): Promise<void> {
  const max = parseCount('--limit', options.limit, MAX_LISTED);
  const api = tenantApi(cli, options);
  const all = await listAll(
    (query) =>
      api.GET('/v1/webhooks/{id}/deliveries', {
        params: { ...pathOf(id), query: { ...query, task: options.task } },
      }),
    (page) => page.deliveries,
    max,
  );
  const none = 'No task yet whose events the webhook gets.';
  if (options.json) printValue(cli.terminal, all);
  else {
    printTable(cli.terminal, DELIVERY_TITLES, all.map(deliveryRowOf), none);
    for (const made of all.flatMap(({ tries = [] }) => tries)) cli.terminal.out(`\n${textOfTry(made)}`);
  }
}

async function redeliver(cli: Cli, id: string, options: ServerOptions & { task?: string }): Promise<void> {
  const params = { ...pathOf(id), query: { task: options.task } };
  const { tasks } = await answerOf(tenantApi(cli, options).POST('/v1/webhooks/{id}/redeliver', { params }));
  if (options.json) return void printValue(cli.terminal, { tasks });
  if (tasks.length === 0) cli.terminal.out('There is nothing to deliver again, or a request is under way.');
  else cli.terminal.out(`The events of these tasks are delivered now:\n${tasks.join('\n')}`);
}

async function remove(cli: Cli, id: string, options: ServerOptions): Promise<void> {
  await answerOf(tenantApi(cli, options).DELETE('/v1/webhooks/{id}', { params: pathOf(id) }));
  if (options.json) printValue(cli.terminal, { id, removed: true });
  else cli.terminal.out(`Webhook ${id} is removed.`);
}

const allOr = (names: string[] | null): string => names?.join(', ') ?? 'all';
const stateOf = ({ enabled }: Webhook): string => (enabled ? 'enabled' : 'disabled');
const rowOf = (webhook: Webhook): string[] => [
  webhook.id,
  webhook.url,
  allOr(webhook.agents),
  allOr(webhook.states),
  stateOf(webhook),
];

function textOfTry({ at, duration_ms: ms, status, error, request, answer }: PrintedTry): string {
  const outcome = status === null ? (error ?? 'no answer') : `HTTP ${status}`;
  return [
    `${formatTime(new Date(at))}  ${outcome} after ${ms} ms`,
    ...(request
      ? [
          `> ${request.method}, event ${request.event}, ${request.bytes} bytes`,
          ...Object.entries(request.headers).map(([name, value]) => `> ${name}: ${value}`),
          ...linesOf('> ', request.body),
        ]
      : []),
    ...linesOf('< ', answer ?? ''),
  ].join('\n');
}

const linesOf = (prefix: string, text: string): string[] =>
  text === '' ? [] : text.split('\n').map((line) => prefix + line);

const deliveryRowOf = ({
  task_id: task,
  state,
  status,
  error,
  failures,
  next_at: at,
  waiting,
}: PrintedDelivery) => [
  task,
  state,
  error ?? (status === null ? '–' : `HTTP ${String(status)}`),
  String(failures),
  at === null ? '–' : formatTime(new Date(at)),
  String(waiting),
];
