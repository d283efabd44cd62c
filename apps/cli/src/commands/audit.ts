import type { TenantSchemas } from '@baton/contract';
import { AUDIT_ACTIONS } from '@baton/database';
import type { Command } from 'commander';
import { listAll, MAX_LISTED, type TargetOptions, tenantApi } from '../api.js';
import { type Cli, JSON_OPTION, type JsonOption } from '../cli.js';
import { UsageError } from '../usage-error.js';
import { parseCount } from '../options.js';
import { formatTime, printValue, printTable } from '../output.js';
import { withOperatorApi } from '../operator/operator-api.js';
import { TOKEN_OPTION, URL_OPTION } from '../server.js';

const TITLES = ['time', 'action', 'target', 'who', 'from', 'outcome'];
const NONE = 'There are no such records.';
/** A terminal can scroll back to all of them. */
const DEFAULT_LIMIT = 100;

interface AuditOptions extends TargetOptions, JsonOption {
  tenant?: string;
  all?: boolean;
  action?: string;
  from?: string;
  until?: string;
  limit: string;
  lines?: boolean;
}

type AuditRecord = TenantSchemas['AuditRecord'];

/** `baton audit`: who changed what. */
export function addAuditCommand(program: Command, cli: Cli): void {
  program
    .command('audit')
    .description('who changed what, the latest first; needs the scope audit:read')
    .option('--tenant <slug>', 'as the operator: only this tenant')
    .option('--all', 'as the operator: all tenants, and the platform itself')
    .option('--action <action>', 'only this action, such as token.create, or all of token')
    .option('--from <time>', 'only since this time, such as 2026-12-31T08:00:00Z')
    .option('--until <time>', 'only before this time')
    .option('--limit <number>', `maximum number of records, up to ${MAX_LISTED}`, String(DEFAULT_LIMIT))
    .option(...URL_OPTION)
    .option(...TOKEN_OPTION)
    .option('--lines', 'print JSON lines: one record per line')
    .option(...JSON_OPTION)
    .action((options: AuditOptions) => printAudit(cli, options));
}

async function printAudit(cli: Cli, options: AuditOptions): Promise<void> {
  const { tenant, all, json, lines } = options;
  if (all && tenant !== undefined) throw new UsageError('Give --tenant <slug> or --all, not both.');
  const { limit, ...filter } = readOptions(options);
  const records =
    all || tenant !== undefined
      ? await withOperatorApi(cli, options, (api) =>
          listAll(
            (page) => api.GET('/v1/admin/audit', { params: { query: { tenant, ...filter, ...page } } }),
            ({ records: entries }) => entries,
            limit,
          ),
        )
      : await ownRecords(cli, options, filter, limit);
  if (lines) for (const record of records) cli.terminal.out(JSON.stringify(record));
  else if (json) printValue(cli.terminal, records);
  else printTable(cli.terminal, TITLES, records.map(rowOf), NONE);
}

/** The records of the tenant of the token. */
function ownRecords(cli: Cli, options: AuditOptions, filter: object, limit: number): Promise<AuditRecord[]> {
  const api = tenantApi(cli, options);
  return listAll(
    (page) => api.GET('/v1/audit', { params: { query: { ...filter, ...page } } }),
    ({ records }) => records,
    limit,
  );
}

function readOptions({ action, from, until, limit }: AuditOptions) {
  const count = parseCount('--limit', limit, MAX_LISTED);
  const known = Object.keys(AUDIT_ACTIONS);
  if (action !== undefined && !known.some((each) => each === action || each.startsWith(`${action}.`))) {
    throw new UsageError(`--action: there is no action "${action}": choose from ${known.join(', ')}.`);
  }
  return { action, from: readTime('--from', from), until: readTime('--until', until), limit: count };
}

function readTime(option: string, text: string | undefined): string | undefined {
  if (text === undefined) return undefined;
  const time = new Date(text);
  if (!Number.isNaN(time.getTime())) return time.toISOString();
  throw new UsageError(`${option}: "${text}" is not a time: give one such as 2026-12-31T08:00:00Z.`);
}

function rowOf(record: AuditRecord): string[] {
  const { at, actor, action, target, source, outcome } = record;
  return [
    formatTime(new Date(at)),
    action,
    `${target.kind} ${target.name}`,
    actor.name ?? actor.key,
    source ?? '-',
    outcome,
  ];
}
