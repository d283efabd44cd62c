import type { TenantPaths, TenantSchemas } from '@baton/contract';
import type { Command } from 'commander';
import { type Cli, JSON_OPTION } from '../cli.js';
import { UsageError } from '../usage-error.js';
import { formatTime, printFields, printValue, printTable } from '../output.js';
import { TOKEN_OPTION, URL_OPTION } from '../server.js';
import { answerOf, listAll, type ServerOptions, tenantApi } from '../api.js';

const TITLES = ['name', 'agent', 'when', 'time zone', 'next', 'last', 'task', 'state'];

interface CreateScheduleOptions extends ServerOptions {
  agent: string;
  text?: string;
  message?: string;
  cron?: string;
  at?: string;
  timeZone?: string;
  overlap?: string;
  missed?: string;
  sameContext?: boolean;
  starts?: string;
  ends?: string;
  maxCount?: string;
  paused?: boolean;
}

type ScheduleSummary = TenantSchemas['ScheduleSummary'];
type NewSchedule = TenantPaths['/v1/schedules']['post']['requestBody']['content']['application/json'];

/** `baton schedules …`: messages to agents at fixed times. */
export function addScheduleCommands(program: Command, cli: Cli): void {
  const schedules = program
    .command('schedules')
    .description('messages at fixed times; needs a token of the tenant');
  const add = (name: string, description: string, argument?: string): Command => {
    const command = schedules.command(name).description(description);
    if (argument) command.argument(argument, 'name or id of the schedule');
    return command
      .option(...URL_OPTION)
      .option(...TOKEN_OPTION)
      .option(...JSON_OPTION);
  };
  add('list', 'list the schedules by name').action((options: ServerOptions) => list(cli, options));
  addCreateCommand(add('create', 'create a schedule'), cli);
  add('show', 'show a schedule with its last outcome', '<name>').action(
    (name: string, options: ServerOptions) => show(cli, name, options),
  );
  add('pause', 'pause a schedule: its times create no tasks', '<name>').action(
    (name: string, options: ServerOptions) => setPaused(cli, name, true, options),
  );
  add('resume', 'resume a schedule with its next time', '<name>').action(
    (name: string, options: ServerOptions) => setPaused(cli, name, false, options),
  );
  add('run', 'create a task now', '<name>').action((name: string, options: ServerOptions) =>
    runNow(cli, name, options),
  );
  add('remove', 'remove a schedule; its tasks stay', '<name>').action(
    (name: string, options: ServerOptions) => remove(cli, name, options),
  );
}

function addCreateCommand(command: Command, cli: Cli): void {
  command
    .argument('<name>', 'lower-case letters, digits and hyphens')
    .requiredOption('--agent <agent>', 'slug or id of the agent')
    .option('--text <text>', 'text of the message')
    .option('--message <json>', 'message of A2A 1.0 with parts and metadata, instead of --text')
    .option('--cron <expression>', 'repeatedly, e.g. "0 8 * * 1-5"; with six fields the first is seconds')
    .option('--at <time>', 'once, e.g. 2026-12-31T08:00:00+01:00')
    .option('--time-zone <name>', 'time zone of --cron, e.g. Europe/Berlin (default: UTC)')
    .option(
      '--overlap <policy>',
      'if the previous task is still running: skip, queue, allow, cancel-previous',
    )
    .option('--missed <policy>', 'what to do with missed times: fire-once, skip')
    .option('--same-context', 'all tasks share one conversation')
    .option('--starts <time>', 'ignore times before this')
    .option('--ends <time>', 'ignore times after this')
    .option('--max-count <number>', 'end after this many tasks')
    .option('--paused', 'create it paused')
    .action((name: string, options: CreateScheduleOptions) => create(cli, name, options));
}

/** A schedule is named by its name or its id. */
const pathOf = (name: string) => ({ path: { id: name } });

async function list(cli: Cli, options: ServerOptions): Promise<void> {
  const api = tenantApi(cli, options);
  const all = await listAll(
    (query) => api.GET('/v1/schedules', { params: { query } }),
    ({ schedules }) => schedules,
  );
  const none =
    'No schedules yet: npx baton schedules create <name> --agent <agent> --cron "0 8 * * *" --text "…"';
  if (options.json) printValue(cli.terminal, all);
  else printTable(cli.terminal, TITLES, all.map(rowOf), none);
}

async function create(cli: Cli, name: string, options: CreateScheduleOptions): Promise<void> {
  const { agent, text, cron, at, timeZone, overlap, missed, sameContext, starts, ends, paused } = options;
  // The server checks the words. Its error lists the valid ones.
  const body = {
    name,
    agent,
    text,
    cron,
    at,
    time_zone: timeZone,
    overlap,
    missed,
    starts_at: starts,
    ends_at: ends,
    paused,
    context: sameContext ? 'same' : undefined,
    max_count: options.maxCount === undefined ? undefined : Number(options.maxCount),
    message: options.message === undefined ? undefined : parseMessage(options.message),
  } as NewSchedule;
  const made = await answerOf(tenantApi(cli, options).POST('/v1/schedules', { body }));
  if (options.json) printValue(cli.terminal, made);
  else cli.terminal.out(`Schedule ${name} is created; ${nextOf(made)}.`);
}

function parseMessage(text: string): object {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value;
  } catch {
    // Not JSON: the error below.
  }
  throw new UsageError(
    `--message: this is not a JSON object: give one such as '{"parts": [{"text": "hello"}]}'.`,
  );
}

async function show(cli: Cli, name: string, options: ServerOptions): Promise<void> {
  const found = await answerOf(tenantApi(cli, options).GET('/v1/schedules/{id}', { params: pathOf(name) }));
  if (options.json) return void printValue(cli.terminal, found);
  const { last_outcome: last, last_task: task, fired, max_count: maxCount, passed } = found;
  const lines = [
    ['name', found.name],
    ['agent', found.agent],
    ['when', `${whenOf(found)} (${found.time_zone})`],
    ['next', nextOf(found)],
    ['policy', `overlap ${found.overlap}, missed ${found.missed}, context ${found.context}`],
    ['tasks', maxCount === null ? String(fired) : `${String(fired)} of ${String(maxCount)}`],
    ['no task', `${passed.skipped} skipped, ${passed.missed} missed, ${passed.refused} refused`],
    [
      'last',
      last ? [`${last.outcome}, due ${timeOf(last.due_at)}`, last.reason].filter(Boolean).join(': ') : '-',
    ],
    ['last task', task ? `${task.task_id}: ${task.state ?? 'no longer kept'}` : '-'],
  ] as const;
  printFields(cli.terminal, lines, 10);
}

async function setPaused(cli: Cli, name: string, paused: boolean, options: ServerOptions): Promise<void> {
  const changed = await answerOf(
    tenantApi(cli, options).PATCH('/v1/schedules/{id}', { params: pathOf(name), body: { paused } }),
  );
  if (options.json) printValue(cli.terminal, changed);
  else cli.terminal.out(`Schedule ${changed.name} is ${paused ? 'paused' : `resumed; ${nextOf(changed)}`}.`);
}

async function runNow(cli: Cli, name: string, options: ServerOptions): Promise<void> {
  const made = await answerOf(
    tenantApi(cli, options).POST('/v1/schedules/{id}/run', { params: pathOf(name) }),
  );
  if (options.json) printValue(cli.terminal, made);
  else cli.terminal.out(`Schedule ${name} has created task ${made.task_id}.`);
}

async function remove(cli: Cli, name: string, options: ServerOptions): Promise<void> {
  await answerOf(tenantApi(cli, options).DELETE('/v1/schedules/{id}', { params: pathOf(name) }));
  if (options.json) printValue(cli.terminal, { name, removed: true });
  else cli.terminal.out(`Schedule ${name} is removed.`);
}

const timeOf = (text: string): string => formatTime(new Date(text));
const whenOf = ({ cron, at }: ScheduleSummary): string => cron ?? (at === null ? '-' : timeOf(at));

function nextOf({ paused, paused_reason: reason, waiting, next_at: next }: ScheduleSummary): string {
  if (paused) return reason === null ? 'paused' : `paused by Baton: ${reason}`;
  if (next === null) return 'no time is left';
  return waiting ? `waiting for the previous task since ${timeOf(next)}` : `next at ${timeOf(next)}`;
}

function rowOf(schedule: ScheduleSummary): string[] {
  const {
    paused,
    paused_reason: reason,
    waiting,
    next_at: next,
    last_outcome: last,
    last_task: task,
  } = schedule;
  return [
    schedule.name,
    schedule.agent,
    whenOf(schedule),
    schedule.time_zone,
    paused
      ? reason === null
        ? 'paused'
        : 'paused by Baton'
      : waiting
        ? 'waiting'
        : formatTime(next === null ? null : new Date(next)),
    last?.outcome ?? '-',
    task?.task_id ?? '-',
    task?.state ?? '-',
  ];
}
