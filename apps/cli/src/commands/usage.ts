import type { TenantSchemas } from '@baton/contract';
import type { Command } from 'commander';
import { type Cli, JSON_OPTION, type JsonOption } from '../cli.js';
import { printTable, printValue } from '../output.js';
import { TOKEN_OPTION, URL_OPTION } from '../server.js';
import { answerOf, type TargetOptions, tenantApi } from '../api.js';
import { TasksClient } from '../tasks/tasks-client.js';
import { choice, sinceOf } from '../options.js';

interface UsageOptions extends TargetOptions, JsonOption {
  by: TenantSchemas['Usage']['by'];
  since: string;
  until?: string;
  agent?: string;
  csv?: boolean;
}

type GroupUsage = Omit<
  TenantSchemas['Usage']['usage'][number],
  'cached_tokens' | 'cache_write_tokens' | 'agent_cost' | 'unpriced_tokens' | 'p95_seconds' | 'last_ended_at'
>;

/** `baton usage`: the usage of tasks, and its cost. */
export function addUsageCommand(program: Command, cli: Cli): void {
  program
    .command('usage')
    .description('sum up the tasks that the token sees: number, time, model tokens and cost')
    .addOption(choice('--by <key>', 'group by', ['day', 'agent', 'owner', 'token', 'model'], 'day'))
    .option('--since <when>', 'begin: 12h or 30d ago, or a time; rounded down to the hour', '7d')
    .option('--until <when>', 'end: 12h or 30d ago, or a time; rounded down to the hour')
    .option('--agent <agent>', 'only of this agent: its slug or id')
    .option('--csv', 'print CSV, for spreadsheets')
    .option(...URL_OPTION)
    .option(...TOKEN_OPTION)
    .option(...JSON_OPTION)
    .action((options: UsageOptions) => printUsage(cli, options));
}

async function printUsage(cli: Cli, options: UsageOptions): Promise<void> {
  const { by, since, until, agent, csv, json } = options;
  const query = {
    by,
    since: sinceOf(since).toISOString(),
    until: until === undefined ? undefined : sinceOf(until, undefined, '--until').toISOString(),
    agent,
  };
  const api = tenantApi(cli, options);
  if (csv) {
    const params = { query: { ...query, format: 'csv' as const } };
    const text = await answerOf(api.GET('/v1/usage', { params, parseAs: 'text' }));
    return void cli.terminal.out(text.trimEnd());
  }
  const found = await answerOf(api.GET('/v1/usage', { params: { query } }));
  if (json) return void printValue(cli.terminal, found);
  const { usage, complete, currency, unpriced_models: unpriced } = found;
  const slugs = by === 'agent' && usage.length > 0 ? await new TasksClient(api).slugs() : undefined;
  const titles = [
    by === 'day' ? 'day (UTC)' : by,
    'tasks',
    'failed',
    'time',
    'input tokens',
    'output tokens',
    ...(currency === null ? [] : [`cost (${currency})`]),
  ];
  const rows = usage.map((group) => rowOf({ ...group, key: slugs?.get(group.key) ?? (group.key || '-') }));
  if (usage.length > 1) rows.push(rowOf(totalOf(usage)));
  printTable(cli.terminal, titles, rows, 'There are no such tasks.');
  if (unpriced.length > 0 && currency !== null) {
    cli.terminal.err(`These models have no price, so their tokens are in no cost: ${unpriced.join(', ')}.`);
  }
  if (!complete)
    cli.terminal.err('There is more: some tasks are not counted. Ask for a shorter time, or later.');
}

const rowOf = (group: GroupUsage): string[] => [
  group.key,
  String(group.tasks),
  String(group.failed),
  durationOf(group.seconds),
  String(group.input_tokens),
  String(group.output_tokens),
  ...(group.cost === null ? [] : [group.cost.toFixed(group.cost < 1 ? 4 : 2)]),
];

const totalOf = (usage: readonly GroupUsage[]): GroupUsage => {
  const sum = (name: Exclude<keyof GroupUsage, 'key'>): number =>
    usage.reduce((all, one) => all + (one[name] ?? 0), 0);
  return {
    key: 'total',
    tasks: sum('tasks'),
    failed: sum('failed'),
    seconds: sum('seconds'),
    calls: sum('calls'),
    input_tokens: sum('input_tokens'),
    output_tokens: sum('output_tokens'),
    cost: usage.some(({ cost }) => cost !== null) ? sum('cost') : null,
  };
};

/** `59s`, `2h 05m 00s` */
function durationOf(seconds: number): string {
  const whole = Math.round(seconds);
  const [hours, minutes] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60];
  const two = (number: number): string => String(number).padStart(2, '0');
  if (hours > 0) return `${hours}h ${two(minutes)}m ${two(whole % 60)}s`;
  return minutes > 0 ? `${minutes}m ${two(whole % 60)}s` : `${whole}s`;
}
