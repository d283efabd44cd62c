import type { OperatorSchemas } from '@baton/contract';
import type { Command } from 'commander';
import { answerOf, listAll } from '../api.js';
import type { Cli } from '../cli.js';
import { type OperatorOptions, withOperatorApi, withOperatorOptions } from '../operator/operator-api.js';
import { printed } from '../operator/printed.js';
import { printTable, printValue } from '../output.js';
import { choice, parseCount, sinceOf } from '../options.js';

type ReportedTenant = OperatorSchemas['TenantRow'];

interface ReportOptions extends OperatorOptions {
  sort: keyof typeof COLUMNS;
  since: string;
  until?: string;
  limit: string;
  csv?: boolean;
}

/** Columns of the API by the words of `--sort`. */
const COLUMNS = {
  slots: 'runs_in_flight',
  waiting: 'waiting_runs',
  bytes: 'stored_bytes',
  tasks: 'tasks',
  failed: 'failed',
  seconds: 'seconds',
  calls: 'calls',
  input: 'input_tokens',
  output: 'output_tokens',
  cost: 'cost',
  tenant: 'tenant',
} as const satisfies Record<string, keyof ReportedTenant>;
/** All are in memory before they are printed. */
const MAX_LISTED = 100_000;

/** `baton tenants report`: which tenants take slots, bytes, tokens and money. */
export function addTenantsReportCommand(tenants: Command, cli: Cli): void {
  withOperatorOptions(tenants.command('report'))
    .description('show the present load of every tenant, and its use of models')
    .addOption(choice('--sort <column>', 'the largest first', Object.keys(COLUMNS), 'slots'))
    .option('--since <when>', 'usage since: 12h or 30d ago, or a time; rounded down to the hour', '24h')
    .option('--until <when>', 'usage until: 12h or 30d ago, or a time; rounded down to the hour')
    .option('--limit <number>', 'maximum number of tenants', '20')
    .option('--csv', 'print CSV of all tenants, for spreadsheets')
    .action((options: ReportOptions) => report(cli, options));
}

async function report(cli: Cli, options: ReportOptions): Promise<void> {
  const { since, until, csv, json } = options;
  const asked = {
    sort: COLUMNS[options.sort],
    since: sinceOf(since).toISOString(),
    until: until === undefined ? undefined : sinceOf(until, undefined, '--until').toISOString(),
  };
  const max = parseCount('--limit', options.limit, MAX_LISTED);
  if (csv) {
    const params = { query: { ...asked, format: 'csv' as const } };
    const text = await withOperatorApi(cli, options, (api) =>
      answerOf(api.GET('/v1/admin/usage', { params, parseAs: 'text' })),
    );
    return void cli.terminal.out(text.trimEnd());
  }
  let currency = null as string | null;
  const rows = await withOperatorApi(cli, options, (api) =>
    listAll(
      (query) => api.GET('/v1/admin/usage', { params: { query: { ...query, ...asked } } }),
      (page) => {
        currency = page.currency;
        return page.tenants;
      },
      max,
    ),
  );
  if (json) return void printValue(cli.terminal, rows.map(printed));
  const titles = [
    'tenant',
    'slots',
    'waiting runs',
    'stored bytes',
    'tasks',
    'failed',
    'task seconds',
    'model calls',
    'input tokens',
    'output tokens',
    ...(currency === null ? [] : [`cost (${currency})`]),
  ];
  printTable(cli.terminal, titles, rows.map(rowOf), 'No tenants yet: npx baton tenants create <slug>');
}

const rowOf = (row: ReportedTenant): string[] => [
  row.tenant,
  String(row.runs_in_flight),
  String(row.waiting_runs),
  row.stored_bytes === null ? 'not counted yet' : String(row.stored_bytes),
  String(row.tasks),
  String(row.failed),
  String(Math.round(row.seconds)),
  String(row.calls),
  String(row.input_tokens),
  String(row.output_tokens),
  ...(row.cost === null ? [] : [row.cost.toFixed(row.cost > 0 && row.cost < 1 ? 4 : 2)]),
];
