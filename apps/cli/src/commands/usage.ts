import type { Command } from 'commander';
import { type Cli, JSON_OPTION, type JsonOption } from '../cli.js';
import { printTable, printValue } from '../output.js';
import { ApiClient, type TargetOptions, TOKEN_OPTION, URL_OPTION } from '../server.js';
import { RequestsClient } from '../tasks/requests-client.js';
import { choice, sinceOf } from './options.js';

interface Options extends TargetOptions, JsonOption {
  by: string;
  since: string;
  agent?: string;
}

interface GroupJson {
  key: string;
  tasks: number;
  failed: number;
  seconds: number;
  input_tokens: number;
  output_tokens: number;
}

/** `baton usage`: what tasks have used. */
export function addUsageCommand(program: Command, cli: Cli): void {
  program
    .command('usage')
    .description('sum up tasks, their time and the tokens of models, of the tasks that the token sees')
    .addOption(choice('--by <key>', 'what to sum up by', ['day', 'agent', 'owner'], 'day'))
    .option('--since <when>', 'only tasks with a status since then: 12h, 30d, or a time', '7d')
    .option('--agent <agent>', 'only of this agent: its slug or id')
    .option(...URL_OPTION)
    .option(...TOKEN_OPTION)
    .option(...JSON_OPTION)
    .action((options: Options) => printUsage(cli, options));
}

async function printUsage(cli: Cli, options: Options): Promise<void> {
  const { by, since, agent } = options;
  const query = { by, since: sinceOf(since).toISOString(), ...(agent !== undefined && { agent }) };
  const api = ApiClient.of(cli, options);
  type UsageJson = { complete: boolean; usage: GroupJson[] };
  const found = await api.call<UsageJson>('GET', `usage?${new URLSearchParams(query).toString()}`);
  if (options.json) return void printValue(cli.terminal, found);
  const { usage, complete } = found;
  const slugs = by === 'agent' && usage.length > 0 ? await new RequestsClient(api).slugs() : undefined;
  const titles = [
    by === 'day' ? 'day (UTC)' : by,
    'tasks',
    'failed',
    'time',
    'input tokens',
    'output tokens',
  ];
  const rows = usage.map((group) => rowOf({ ...group, key: slugs?.get(group.key) ?? (group.key || '-') }));
  if (usage.length > 1) rows.push(rowOf(totalOf(usage)));
  printTable(cli.terminal, titles, rows, 'There are no such tasks.');
  if (!complete) cli.terminal.err('There is more: only the newest 10000 tasks are counted.');
}

const rowOf = (group: GroupJson): string[] => [
  ...[group.key, String(group.tasks), String(group.failed), durationOf(group.seconds)],
  ...[String(group.input_tokens), String(group.output_tokens)],
];

const totalOf = (usage: readonly GroupJson[]): GroupJson => {
  const sum = (name: Exclude<keyof GroupJson, 'key'>): number =>
    usage.reduce((all, one) => all + one[name], 0);
  return {
    ...{ key: 'total', tasks: sum('tasks'), failed: sum('failed'), seconds: sum('seconds') },
    ...{ input_tokens: sum('input_tokens'), output_tokens: sum('output_tokens') },
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
