import { isTerminal, Task } from '@baton/a2a';
import { SPAN_KINDS, type TenantSchemas, type TraceFilter } from '@baton/contract';
import { type Command, Option } from 'commander';
import { setTimeout as delay } from 'node:timers/promises';
import { type ServerOptions, tenantApi } from '../api.js';
import type { NumberedEvent } from '../call/agent-client.js';
import { printEvent, replyText, statusTime, timeColumn } from '../call/describe.js';
import { follow } from '../call/follow.js';
import { type Cli, JSON_OPTION } from '../cli.js';
import { OfTaskError } from '../of-task-error.js';
import {
  formatTime,
  formatTimeText,
  oneLine,
  printable,
  printFields,
  printNext,
  printRunError,
  printTable,
  printValue,
  type Terminal,
} from '../output.js';
import { OperatorError } from '../operator-error.js';
import { UsageError } from '../usage-error.js';
import { RefusedError } from '../refused-error.js';
import { TOKEN_OPTION, URL_OPTION } from '../server.js';
import { EventTimes } from '../tasks/event-times.js';
import { callRow, fieldsOf, linksOf, stepRow } from '../tasks/task-fields.js';
import { printCallRecord } from '../tasks/print-call-record.js';
import { filteredTrace, printCall, printAnswers, printTrace } from '../tasks/print-trace.js';
import { taskRecord, TasksClient } from '../tasks/tasks-client.js';
import { assertDone, LOST, parseSequence, printEvents, type TurnResult } from './call.js';
import { parseCount, sinceOf } from './options.js';

const TITLES = ['task', 'agent', 'state', 'updated', 'context', 'reason'];
const WAITING_TITLES = ['task', 'agent', 'since', 'expires', 'waits for', 'asked'];
const STEP_TITLES = ['step', 'kind', 'state', 'attempts', 'started', 'ended', 'error'];
const EFFECT_TITLES = ['task', 'effect', 'kind', 'outcome', 'begun', 'key'];
const CALL_TITLES = ['model call', 'took', 'model', 'tokens', 'attempt', 'outcome'];
const MAX_LISTED = 10_000;
const MAX_ENTRY = 999_999_999;
/** The longest time that `tasks trace --slow` takes. */
const MAX_SECONDS = 999_999_999;
/** Events that `show` prints: the newest. */
const MAX_SHOWN_EVENTS = 20;

interface LogsOptions extends ServerOptions {
  after: string;
  follow?: boolean;
  console?: boolean;
}

interface ListOptions extends ServerOptions {
  state?: TenantSchemas['TaskState'];
  agent?: string;
  context?: string;
  since?: string;
  until?: string;
  search?: string;
  parked?: true;
  limit: string;
}

/** `baton tasks …`: the tasks of a tenant. */
export function addTaskCommands(program: Command, cli: Cli): void {
  const tasks = program.command('tasks').description('tasks of a tenant; needs a token of the tenant');
  const add = (name: string, description: string): Command =>
    tasks
      .command(name)
      .description(description)
      .option(...URL_OPTION)
      .option(...TOKEN_OPTION)
      .option(...JSON_OPTION);
  const ofTask = (name: string, description: string): Command =>
    add(name, description).argument('<task>', 'id of the task');

  add('list', 'list the tasks that the token sees, the newest status first')
    .option('--state <state>', 'only in this state, such as failed or input-required')
    .option('--agent <agent>', 'only of this agent: its slug or id')
    .option('--context <id>', 'only of this context; needs --agent')
    .option('--since <when>', 'only with a status since then: 2h, 7d, or a time')
    .option('--until <when>', 'only with a status before then: 1h, 1d, or a time')
    .option(
      '--search <text>',
      'only with this text in the first message, status, error or answer, or in the id of the context or task',
    )
    .option('--parked', 'only tasks that wait for other code of their agent')
    .option('--limit <number>', `maximum number of tasks, up to ${MAX_LISTED}`, '50')
    .action((options: ListOptions) => list(cli, options));
  add(
    'waiting',
    'list the tasks that wait for an answer and that the token may answer, the oldest first; needs the scope agents:call',
  )
    .option('--limit <number>', `maximum number of tasks, up to ${MAX_LISTED}`, '50')
    .action((options: ServerOptions & { limit: string }) => waiting(cli, options));
  ofTask(
    'show',
    'show a task: its state, answer, relations, calls of models, steps, newest events, and the last error of its agent',
  )
    .option('--tenant <slug>', 'as the operator: tenant of the task; shows no messages')
    .action(async (task: string, { tenant, ...options }: ServerOptions & { tenant?: string }) => {
      if (tenant === undefined) return show(cli, task, options);
      const { showTaskAsOperator } = await import('../tasks/show-as-operator.js');
      return showTaskAsOperator(cli, task, { tenant, ...options });
    });
  ofTask('find', 'as the operator: find the tenant of a task, and show the task without its messages').action(
    async (task: string, options: ServerOptions) => {
      const { findTaskAsOperator } = await import('../tasks/show-as-operator.js');
      return findTaskAsOperator(cli, task, options);
    },
  );
  ofTask('watch', 'print the events of a task with their times until it ends')
    .option('--after <sequence>', 'start after the event with this sequence', '0')
    .action((task: string, options: ServerOptions & { after: string }) => watch(cli, task, options));
  ofTask('logs', 'print the events of a task so far, with their times, and the last error of its agent')
    .option('--after <sequence>', 'start after the event with this sequence, or after this line', '0')
    .option('-f, --follow', 'go on until the task ends')
    .option('--console', "print what the agent's code has written to its console instead")
    .action((task: string, options: LogsOptions) =>
      options.console ? consoleLines(cli, task, options) : logs(cli, task, options),
    );
  ofTask(
    'trace',
    'show what happened in a task, and how long each part took: turns, waits, attempts, calls of models and tools, questions, children',
  )
    .option(
      '--entry <entry>',
      'show what this call has said, with the scope agents:write; and what its model was sent, with records:read',
    )
    .option('--grep <text>', 'only spans with this text in their kind, name or error, and those around them')
    .addOption(
      new Option('--kind <kind>', 'only spans of this kind, and those around them').choices(SPAN_KINDS),
    )
    .option('--errors', 'only spans that have failed, and those around them')
    .option('--slow <seconds>', 'only spans that take at least this long, and those around them')
    .action((task: string, options: TraceOptions) => trace(cli, task, options));
  add(
    'effects',
    'list the effects of tasks outside of Baton, and whether the end of each is known; needs the scope agents:write',
  )
    .argument('[task]', 'id of a task (default: all tasks, those with the newest status first)')
    .addOption(
      new Option('--outcome <outcome>', 'only with this outcome').choices([
        'intended',
        'sent',
        'confirmed',
        'failed',
        'unknown',
      ]),
    )
    .option('--agent <agent>', 'only of tasks of this agent: its slug or id')
    .option('--since <when>', 'only of tasks with a status since then: 2h, 7d, or a time')
    .option('--limit <number>', `maximum number of effects, up to ${MAX_LISTED}`, '50')
    .action((task: string | undefined, options: EffectOptions) => effects(cli, task, options));
  add('cancel', 'cancel tasks')
    .argument('<task...>', 'ids of the tasks')
    .action((ids: string[], options: ServerOptions) => cancel(cli, ids, options));
  add('resume', 'resume parked tasks with the present code of their agents')
    .argument('<task...>', 'ids of the tasks')
    .action((ids: string[], options: ServerOptions) => resume(cli, ids, options));
  ofTask('send-again', 'send the first message of a task again, as a new task in the same context').action(
    (task: string, options: ServerOptions) => sendAgain(cli, task, options),
  );
  ofTask(
    'continue',
    'continue a failed task at the point of failure, as a new task; finished steps do not run again',
  ).action((task: string, options: ServerOptions) => continueTask(cli, task, options));
  ofTask(
    'fork',
    'make a new task from any point of a task, with other input or another agent; first lists what the fork may repeat',
  )
    .option(
      '--at <entry>',
      'the last entry to take over: the entry of a line of `tasks trace` (default: all)',
    )
    .option('--text <text>', 'another message for the turn')
    .option('--agent <agent>', 'another agent: its slug or id')
    .option('--yes', 'make the fork, also if it may do something again')
    .action((task: string, options: ForkOptions) => fork(cli, task, options));
}

const clientOf = (cli: Cli, options: ServerOptions): TasksClient => new TasksClient(tenantApi(cli, options));

interface EffectOptions extends ServerOptions {
  outcome?: TenantSchemas['Effect']['outcome'];
  agent?: string;
  since?: string;
  limit: string;
}

async function effects(cli: Cli, task: string | undefined, options: EffectOptions): Promise<void> {
  const { outcome, agent, since, limit } = options;
  const query = {
    ...(task !== undefined && { task }),
    ...(outcome !== undefined && { outcome }),
    ...(agent !== undefined && { agent }),
    ...(since !== undefined && { since: sinceOf(since).toISOString() }),
  };
  const found = await clientOf(cli, options).effects(query, parseCount('--limit', limit, MAX_LISTED));
  if (options.json) return void printValue(cli.terminal, found);
  const rows = found.map((each) => [
    each.task_id,
    printable(each.name),
    each.kind,
    each.unknown_outcome ? `${each.outcome} (was unknown: ${each.unknown_outcome})` : each.outcome,
    each.begun_at === null ? '–' : formatTime(new Date(each.begun_at)),
    each.key ?? '–',
  ]);
  printTable(cli.terminal, EFFECT_TITLES, rows, 'There are no such effects.');
}

async function list(cli: Cli, options: ListOptions): Promise<void> {
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
  const client = clientOf(cli, options);
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

async function waiting(cli: Cli, options: ServerOptions & { limit: string }): Promise<void> {
  const client = clientOf(cli, options);
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

async function show(cli: Cli, id: string, options: ServerOptions): Promise<void> {
  const client = clientOf(cli, options);
  const found = await client.get(id);
  if (options.json) return void printValue(cli.terminal, taskRecord(found));
  const task = Task.fromJSON(found.task);
  const slug = (await client.slugs()).get(found.agent_id) ?? found.agent_id;
  printFields(cli.terminal, fieldsOf(found, task, slug));
  const text = replyText(task);
  if (text !== '') cli.terminal.out(`\n${text}`);
  const { steps = [], model_calls: calls, currency } = found;
  if (calls.length > 0) {
    cli.terminal.out('');
    const titles = currency === null ? CALL_TITLES : [...CALL_TITLES, currency];
    printTable(cli.terminal, titles, calls.map(callRow(currency !== null)), '');
  }
  if (steps.length > 0) {
    cli.terminal.out('');
    printTable(cli.terminal, STEP_TITLES, steps.map(stepRow), '');
  }
  await printNewestEvents(cli, client, found);
  if (found.error) printRunError(cli.terminal, found.error);
}

interface TraceOptions extends ServerOptions {
  entry?: string;
  grep?: string;
  kind?: (typeof SPAN_KINDS)[number];
  errors?: boolean;
  slow?: string;
}

/** Which spans the options are about. */
const traceFilterOf = ({ grep, kind, errors, slow }: TraceOptions): TraceFilter => ({
  ...(grep !== undefined && { text: grep }),
  ...(kind && { kind }),
  ...(errors && { errors }),
  ...(slow !== undefined && { minMs: parseCount('--slow', slow, MAX_SECONDS) * 1_000 }),
});

async function trace(cli: Cli, id: string, options: TraceOptions): Promise<void> {
  const client = clientOf(cli, options);
  if (options.entry !== undefined) {
    return traceEntry(cli, client, id, parseCount('--entry', options.entry, MAX_ENTRY), options.json);
  }
  const filter = traceFilterOf(options);
  const [whole, slugs] = [await client.trace(id), await client.slugs()];
  const found = filteredTrace(whole, filter, slugs);
  if (options.json) return void printValue(cli.terminal, found);
  printTrace(cli.terminal, whole, slugs, filter);
  if (found.spans.some(({ answered_by: by }) => by !== undefined))
    printAnswers(cli.terminal, found, await client.get(id));
  const kin = linksOf(found).map(([name, task]) => `${name}: ${task}`);
  if (kin.length > 0) cli.terminal.out(`\n${kin.join('\n')}`);
}

/** Either scope shows a part: the output of a call, or the request to its model. */
async function traceEntry(
  { terminal }: Cli,
  client: TasksClient,
  id: string,
  entry: number,
  json: boolean | undefined,
): Promise<void> {
  let refusal: RefusedError | undefined;
  const ifAllowed = <T>(answer: Promise<T>): Promise<T | undefined> =>
    answer.catch((error: unknown): undefined => {
      if (!(error instanceof RefusedError) || error.status !== 403) throw error;
      refusal ??= error;
    });
  const call = await ifAllowed(client.call(id, entry));
  const record = call?.tool || call?.step ? undefined : await ifAllowed(client.callRecord(id, entry));
  if (!call && !record) throw refusal ?? new OperatorError(`Nothing is recorded of the entry ${entry}.`);
  if (json)
    return void printValue(terminal, {
      ...call,
      task_id: id,
      entry,
      ...(record !== undefined && { record }),
    });
  if (record) return void printCallRecord(terminal, record);
  if (call) printCall(terminal, call);
  if (!call?.model) return;
  terminal.err(
    record === null
      ? "Baton has not recorded what the model was sent. Set `record: all` or `record: failed` in the agent's settings."
      : 'To see what the model was sent, use a token with the scope records:read.',
  );
}

async function printNewestEvents(
  { terminal }: Cli,
  client: TasksClient,
  { task_id: id, events: head }: TenantSchemas['Task'],
): Promise<void> {
  if (head === 0) return;
  const after = Math.max(0, head - MAX_SHOWN_EVENTS);
  terminal.out('');
  await printEvents(
    timedEvents(client, id, upTo(head, client.subscribe(id, after))),
    timedPrinter(terminal),
    id,
  );
  if (after > 0) terminal.err(`Earlier events: npx baton tasks logs ${id}`);
}

async function watch(cli: Cli, id: string, options: ServerOptions & { after: string }): Promise<void> {
  const log = followed(cli, id, parseSequence(options.after), options);
  const end = await printLog(cli, id, log, options);
  if (end) assertDone(end);
}

const followed = (cli: Cli, id: string, after: number, options: ServerOptions) => {
  const client = clientOf(cli, options);
  const onLost = (): void => cli.terminal.err(LOST);
  const following = { client, isOver: isTerminal, onLost };
  return follow(client.subscribe(id, after), following, { taskId: id, after });
};

async function logs(cli: Cli, id: string, options: LogsOptions): Promise<void> {
  const after = parseSequence(options.after);
  const client = clientOf(cli, options);
  const { events: head } = await client.get(id);
  const log = options.follow
    ? followed(cli, id, after, options)
    : upTo(head, after < head ? client.subscribe(id, after) : nothing());
  await printLog(cli, id, log, options);
  const { error } = await client.get(id);
  if (error && !options.json) printRunError(cli.terminal, error);
}

/** Prints the events of a task as they come: as data, or as lines that begin with the time. */
async function printLog(
  cli: Cli,
  id: string,
  events: AsyncIterable<NumberedEvent>,
  options: ServerOptions,
): Promise<TurnResult | undefined> {
  const { terminal } = cli;
  if (options.json) return printEvents(events, (event) => printEvent(terminal, event, true), id);
  return printEvents(timedEvents(clientOf(cli, options), id, events), timedPrinter(terminal), id);
}

type TimedEvent = NumberedEvent & { at: Date | undefined };

/** Adds to each event when it was stored. */
async function* timedEvents(
  client: TasksClient,
  id: string,
  events: AsyncIterable<NumberedEvent>,
): AsyncGenerator<TimedEvent> {
  const times = new EventTimes((sequence) => client.eventTimes(id, sequence));
  for await (const event of events) yield { ...event, at: (await times.of(event)) ?? statusTime(event) };
}

const timedPrinter =
  (terminal: Terminal) =>
  ({ at, ...event }: TimedEvent): void =>
    printEvent({ ...terminal, out: (line) => terminal.out(`${timeColumn(at)}  ${line}`) }, event);

/** Between two looks at the console of a task that has not ended. */
const CONSOLE_POLL_MS = 1_000;

async function consoleLines(cli: Cli, id: string, options: LogsOptions): Promise<void> {
  const client = clientOf(cli, options);
  let after = parseSequence(options.after);
  for (let isOver = false; ;) {
    // The last lines of a task are stored a moment after its end: look once more then.
    const wasOver = isOver;
    if (options.follow === true) isOver = isTerminal(await client.stateOf(id));
    for await (const line of client.consoleOf(id, after)) {
      after = line.position;
      if (options.json) printNext(cli.terminal, line);
      else cli.terminal.out(consoleLine(line));
    }
    if (options.follow !== true || wasOver) return;
    await delay(CONSOLE_POLL_MS);
  }
}

const consoleLine = ({ at, attempt, level, text }: TenantSchemas['ConsoleLine']): string =>
  printable(`${formatTimeText(at)}  ${level.padEnd(5)}  attempt ${String(attempt)}  ${text}`);

/** The events up to one of them. */
async function* upTo(head: number, events: AsyncIterable<NumberedEvent>): AsyncGenerator<NumberedEvent> {
  for await (const event of events) {
    yield event;
    if ((event.sequence ?? 0) >= head) return;
  }
}

async function* nothing(): AsyncGenerator<NumberedEvent> {
  // Its caller has everything.
}

async function cancel(cli: Cli, ids: readonly string[], options: ServerOptions): Promise<void> {
  const client = clientOf(cli, options);
  const canceled: object[] = [];
  for (const id of ids) {
    await client.cancel(id).catch((error: unknown) => {
      throw new OfTaskError(id, error);
    });
    canceled.push(taskRecord({ task_id: id, cancelled: true }));
    if (!options.json) cli.terminal.out(`Task ${id} is canceled.`);
  }
  if (options.json) printValue(cli.terminal, canceled);
}

async function resume(cli: Cli, ids: readonly string[], options: ServerOptions): Promise<void> {
  const client = clientOf(cli, options);
  const resumed: object[] = [];
  for (const id of ids) {
    await client.resume(id).catch((error: unknown) => {
      throw new OfTaskError(id, error);
    });
    resumed.push(taskRecord({ task_id: id, resumed: true }));
    if (!options.json) cli.terminal.out(`Task ${id} goes on.`);
  }
  if (options.json) printValue(cli.terminal, resumed);
}

interface ForkOptions extends ServerOptions {
  at?: string;
  text?: string;
  agent?: string;
  yes?: boolean;
}

async function fork(cli: Cli, id: string, { at, text, agent, yes, ...options }: ForkOptions): Promise<void> {
  if (at !== undefined && !/^[1-9]\d{0,8}$/.test(at)) {
    throw new UsageError('--at must be the entry of a line of `baton tasks trace`: 1, 2, 3 …');
  }
  const client = clientOf(cli, options);
  const wanted = {
    ...(at !== undefined && { at: Number(at) }),
    ...(text !== undefined && { text }),
    ...(agent !== undefined && { agent }),
  };
  const { done_again: doneAgain } = await client.fork(id, { ...wanted, dry_run: true });
  if (doneAgain.length > 0 && yes !== true) {
    const lines = doneAgain.map(({ entry, kind, name }) => `  ${kind} ${name} (entry ${entry})`);
    throw new OperatorError(
      `The task has done this after that entry, and the fork may do it again:\n${lines.join('\n')}\nAdd --yes to make the fork.`,
    );
  }
  const made = await client.fork(id, { ...wanted, dry_run: false });
  if (options.json) return void printValue(cli.terminal, made);
  cli.terminal.out(`Task ${id} is forked after entry ${made.at} as task ${made.task_id ?? ''}.`);
  cli.terminal.err(`Follow it with: npx baton tasks watch ${made.task_id ?? ''}`);
}

async function continueTask(cli: Cli, id: string, options: ServerOptions): Promise<void> {
  const made = await clientOf(cli, options).continueTask(id);
  if (options.json) return void printValue(cli.terminal, taskRecord(made));
  cli.terminal.out(`Task ${id} goes on as task ${made.task_id}.`);
  cli.terminal.err(`Follow it with: npx baton tasks watch ${made.task_id}`);
}

async function sendAgain(cli: Cli, id: string, options: ServerOptions): Promise<void> {
  const made = await clientOf(cli, options).sendAgain(id);
  if (options.json) return void printValue(cli.terminal, taskRecord(made));
  cli.terminal.out(`Task ${id} is sent again as task ${made.task_id}.`);
  cli.terminal.err(`Follow it with: npx baton tasks watch ${made.task_id}`);
}
