import { AUDIT_ACTIONS, type AuditRecord, auditJson, AuditStore } from '@baton/database';
import type { Command } from 'commander';
import { type Cli, JSON_OPTION, type JsonOption, OperatorError } from '../cli.js';
import { formatTime, printJson, printTable } from '../output.js';
import { requireTenant, withDatabase } from '../platform.js';
import { ApiClient, type TargetOptions, TOKEN_OPTION, URL_OPTION } from '../server.js';

const TITLES = ['time (utc)', 'action', 'target', 'who', 'from', 'outcome'];
const NONE = 'There are no such records.';
const DEFAULT_LIMIT = 100;
const MAX_LIMIT = 10_000;

interface Options extends TargetOptions, JsonOption {
  tenant?: string;
  all?: boolean;
  action?: string;
  from?: string;
  until?: string;
  limit: string;
}

/** What every way of reading the log asks for. */
interface Wanted {
  action?: string | undefined;
  from?: Date | undefined;
  until?: Date | undefined;
  limit: number;
}

type RecordJson = ReturnType<typeof auditJson>;

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
    .option('--limit <number>', `most records to print, up to ${MAX_LIMIT}`, String(DEFAULT_LIMIT))
    .option(...URL_OPTION)
    .option(...TOKEN_OPTION)
    .option(...JSON_OPTION)
    .action((options: Options) => printAudit(cli, options));
}

async function printAudit(cli: Cli, options: Options): Promise<void> {
  const { tenant, all, json } = options;
  if (all && tenant !== undefined) throw new OperatorError('Give --tenant <slug> or --all, not both.');
  const wanted = readOptions(options);
  const records =
    all || tenant !== undefined
      ? await readAsOperator(cli, tenant, wanted)
      : await readOverHttp(cli, options, wanted);
  if (json) printJson(cli.terminal, records);
  else printTable(cli.terminal, TITLES, records.map(rowOf), NONE);
}

async function readAsOperator(
  { source }: Cli,
  slug: string | undefined,
  wanted: Wanted,
): Promise<RecordJson[]> {
  const records = await withDatabase(source, async ({ tenants, database }): Promise<AuditRecord[]> => {
    const tenantId = slug === undefined ? undefined : (await requireTenant(tenants, slug)).id;
    return new AuditStore(database).list({ ...wanted, ...(tenantId !== undefined && { tenantId }) });
  });
  return records.map(auditJson);
}

async function readOverHttp(cli: Cli, options: TargetOptions, wanted: Wanted): Promise<RecordJson[]> {
  const { action, from, until, limit } = wanted;
  const client = ApiClient.of(cli, options);
  const records: RecordJson[] = [];
  for (let cursor: string | null = ''; cursor !== null && records.length < limit;) {
    const query = new URLSearchParams({
      limit: String(Math.min(100, limit - records.length)),
      ...(action !== undefined && { action }),
      ...(from && { from: from.toISOString() }),
      ...(until && { until: until.toISOString() }),
      ...(cursor && { cursor }),
    });
    const page = await client.call<{ records: RecordJson[]; next_cursor: string | null }>(
      'GET',
      `audit?${query.toString()}`,
    );
    records.push(...page.records);
    cursor = page.next_cursor;
  }
  return records;
}

function readOptions({ action, from, until, limit }: Options): Wanted {
  const count = /^\d{1,5}$/.test(limit) ? Number(limit) : 0;
  if (count < 1 || count > MAX_LIMIT) {
    throw new OperatorError(`--limit: "${limit}" is not a whole number from 1 to ${MAX_LIMIT}.`);
  }
  const known = Object.keys(AUDIT_ACTIONS);
  if (action !== undefined && !known.some((each) => each === action || each.startsWith(`${action}.`))) {
    throw new OperatorError(`--action: there is no action "${action}": choose from ${known.join(', ')}.`);
  }
  return { action, from: readTime('--from', from), until: readTime('--until', until), limit: count };
}

function readTime(option: string, text: string | undefined): Date | undefined {
  if (text === undefined) return undefined;
  const time = new Date(text);
  if (!Number.isNaN(time.getTime())) return time;
  throw new OperatorError(`${option}: "${text}" is not a time: give one such as 2026-12-31T08:00:00Z.`);
}

function rowOf(record: RecordJson): string[] {
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
