import { addTenantCapsCommand } from './caps.js';
import { addTenantsReportCommand } from './tenants-report.js';
import { statSync } from 'node:fs';
import { Readable, type Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { SLUG } from '@baton/a2a';
import { LIMIT_NAMES, type LimitName, type LimitOverrides, limitRule } from '@baton/config';
import type { OperatorPaths, OperatorSchemas } from '@baton/contract';
import type { Command } from 'commander';
import { answerOf, listAll } from '../api.js';
import { type Cli, type JsonOption } from '../cli.js';
import { NotFoundError } from '../not-found-error.js';
import { UsageError } from '../usage-error.js';
import { OperatorError } from '../operator-error.js';
import {
  inOwnWords,
  type OperatorApi,
  type OperatorOptions,
  refusalOf,
  withOperatorApi,
  withOperatorOptions,
} from '../operator/operator-api.js';
import { printed } from '../operator/printed.js';
import { formatTime, printFields, printValue, printTable } from '../output.js';
import { withProgress } from '../progress.js';

/** Characters of the reason of a suspension. */
const MAX_REASON = 200;
const TITLES = ['slug', 'default agent', 'created', 'state', 'id'];

/** Maximum length of the last line of an export. */
const MAX_LINE = 1024 * 1024;
const NDJSON = { 'content-type': 'application/x-ndjson' };

type Tenant = OperatorSchemas['Tenant'];
type TenantPatch =
  OperatorPaths['/v1/admin/tenants/{tenant}']['patch']['requestBody']['content']['application/json'];

/** `baton tenants …`: the customers or teams that Baton serves. */
export function addTenantCommands(program: Command, cli: Cli): void {
  const { terminal } = cli;
  const tenants = program.command('tenants').description('tenants; each is isolated from all others');

  const print = (tenant: Tenant, { json }: JsonOption) =>
    json ? printValue(terminal, printed(tenant)) : printTable(terminal, TITLES, [rowOf(tenant)], '');

  withOperatorOptions(tenants.command('create'))
    .description('create a tenant')
    .argument('<slug>', 'name: lower-case letters, digits and hyphens')
    .action(async (slug: string, options: OperatorOptions) => {
      assertSlug(slug);
      const make = (api: OperatorApi) => answerOf(api.POST('/v1/admin/tenants', { body: { slug } }));
      print(await withOperatorApi(cli, options, make).catch(explainTaken), options);
    });

  withOperatorOptions(tenants.command('list'))
    .description('list the tenants, with their stored bytes')
    .option('--largest', 'those first that keep most')
    .action(async (options: OperatorOptions & { largest?: boolean }) => {
      const bySlug = await withOperatorApi(cli, options, (api) =>
        listAll(
          (query) => api.GET('/v1/admin/tenants', { params: { query } }),
          ({ tenants: page }) => page,
        ),
      );
      const all = options.largest
        ? bySlug.toSorted((one, other) => (other.stored_bytes ?? 0) - (one.stored_bytes ?? 0))
        : bySlug;
      const rows = all.map((tenant) => [...rowOf(tenant), String(tenant.stored_bytes ?? 'not counted yet')]);
      if (options.json) printValue(terminal, all.map(printed));
      else {
        const titles = [...TITLES, 'stored bytes'];
        printTable(terminal, titles, rows, 'No tenants yet: npx baton tenants create <slug>');
      }
    });

  withOperatorOptions(tenants.command('set'))
    .description('change settings of a tenant')
    .argument('<slug>', 'slug of the tenant')
    .option('--default-agent <agent>', 'agent for calls that name no agent')
    .option(
      '--index-model <model>',
      'model with which the agent `index` routes: provider/model, none, or default (INDEX_MODEL)',
    )
    .option('--index-model-url <url>', 'URL of that model, if not the usual one of its provider')
    .action(async (slug: string, options: SetTenantOptions) => {
      const { defaultAgent, indexModel, indexModelUrl } = options;
      if (defaultAgent === undefined && indexModel === undefined) {
        throw new UsageError(
          'Name what to change: --default-agent <agent> or --index-model <provider/model>.',
        );
      }
      const change = { default_agent: defaultAgent, index_model: indexModel, index_model_url: indexModelUrl };
      const changed = withOperatorApi(cli, options, (api) => changeTenant(api, slug, change));
      print(await changed.catch(nameOptions(slug, options)), options);
    });

  addUsageCommand(tenants, cli);
  addTenantsReportCommand(tenants, cli);
  addLifecycleCommands(tenants, cli);
  addArchiveCommands(tenants, cli);
  addLimitsCommand(tenants, cli);
  addTenantCapsCommand(tenants, cli);
  addEgressCommand(tenants, cli);
}

interface SetTenantOptions extends OperatorOptions {
  defaultAgent?: string;
  indexModel?: string;
  indexModelUrl?: string;
}

const changeTenant = (api: OperatorApi, tenant: string, body: TenantPatch): Promise<Tenant> =>
  answerOf(api.PATCH('/v1/admin/tenants/{tenant}', { params: { path: { tenant } }, body }));

function explainTaken(error: unknown): never {
  const { status, reason = '' } = refusalOf(error) ?? {};
  if (status === 409 && reason.endsWith('exists')) throw new OperatorError(`${reason}: choose another slug.`);
  return inOwnWords(error);
}

/** Names the options instead of the fields of the API. */
const nameOptions =
  (slug: string, { defaultAgent }: SetTenantOptions) =>
  (error: unknown): never => {
    const { status, reason = '' } = refusalOf(error) ?? {};
    if (status !== 400) throw error;
    if (reason.startsWith('default_agent:')) {
      throw new NotFoundError(
        `Tenant "${slug}" has no agent "${defaultAgent ?? ''}": npx baton agents list --tenant ${slug} shows its agents.`,
      );
    }
    const named = reason
      .replace('index_model:', '--index-model')
      .replace('index_model_url:', '--index-model-url');
    throw new UsageError(`${named}.`);
  };

/** `baton tenants usage …` */
function addUsageCommand(tenants: Command, cli: Cli): void {
  withOperatorOptions(tenants.command('usage'))
    .description('show the runs, stored bytes and model tokens of a tenant')
    .argument('<slug>', 'slug of the tenant')
    .action(async (slug: string, options: OperatorOptions) => {
      const params = { path: { tenant: slug } };
      const usage = await withOperatorApi(cli, options, (api) =>
        answerOf(api.GET('/v1/admin/tenants/{tenant}/usage', { params })),
      );
      const { days, stored_bytes: stored, queued_runs: queued, running_runs: running } = usage;
      if (options.json) {
        return void printValue(cli.terminal, { ...printed(usage), days: days.map(printed) });
      }
      printFields(
        cli.terminal,
        [
          ['stored bytes', stored === null ? 'not counted yet' : String(stored)],
          ['runs', `${queued} queued, ${running} running, ${usage.suspended_runs} suspended`],
          ['dead letters', String(usage.dead_letters)],
          ...days.map(
            ({ day, input_tokens: input, output_tokens: output }) =>
              [day, `${input} input tokens, ${output} output tokens`] as const,
          ),
        ],
        14,
      );
    });
}

interface SuspendOptions extends OperatorOptions {
  reason?: string;
  stop?: boolean;
}

/** `baton tenants suspend|resume|delete …` */
function addLifecycleCommands(tenants: Command, cli: Cli): void {
  const { terminal } = cli;
  withOperatorOptions(tenants.command('suspend'))
    .description(
      'suspend a tenant: its calls are refused and its schedules do not fire; its running tasks finish',
    )
    .argument('<slug>', 'slug of the tenant')
    .option('--reason <text>', 'reason for its callers')
    .option('--stop', 'also cancel its running and queued tasks')
    .action(async (slug: string, options: SuspendOptions) => {
      const { reason, stop = false, json } = options;
      assertReason(reason);
      const params = { path: { tenant: slug } };
      const { tenant, canceled_tasks: canceledTasks } = await withOperatorApi(cli, options, (api) =>
        answerOf(api.POST('/v1/admin/tenants/{tenant}/suspend', { params, body: { reason, stop } })),
      );
      if (json) return void printValue(terminal, { tenant: printed(tenant), canceledTasks });
      const stopped = stop ? `; canceled tasks: ${canceledTasks}` : '';
      terminal.out(`Tenant ${slug} is suspended${stopped}.`);
    });

  withOperatorOptions(tenants.command('resume'))
    .description('end the suspension of a tenant')
    .argument('<slug>', 'slug of the tenant')
    .action(async (slug: string, options: OperatorOptions) => {
      const params = { path: { tenant: slug } };
      const tenant = await withOperatorApi(cli, options, (api) =>
        answerOf(api.POST('/v1/admin/tenants/{tenant}/resume', { params })),
      );
      if (options.json) printValue(terminal, printed(tenant));
      else terminal.out(`Tenant ${slug} is resumed.`);
    });

  withOperatorOptions(tenants.command('delete'))
    .description('DELETE a tenant and all its data; run it again after an interruption')
    .argument('<slug>', 'slug of the tenant')
    .option('--yes', 'really delete it')
    .action(async (slug: string, options: OperatorOptions & { yes?: boolean }) => {
      const { yes, json } = options;
      if (!yes) {
        throw new UsageError(
          `This deletes all tokens, agents, secrets, schedules and tasks of "${slug}" permanently: add --yes.`,
        );
      }
      const params = { path: { tenant: slug }, query: { confirm: slug } };
      const deleted = await withOperatorApi(cli, options, (api) =>
        answerOf(api.DELETE('/v1/admin/tenants/{tenant}', { params })),
      );
      for (const [table, rows] of Object.entries(deleted.rows))
        terminal.err(`${table}: ${rows} rows deleted`);
      if (json) return void printValue(terminal, printed(deleted));
      const rows = Object.values(deleted.rows).reduce((sum, count) => sum + count, 0);
      terminal.out(
        `Tenant ${slug} (${deleted.id}) is deleted: ${rows} rows, ${deleted.canceled_tasks} running tasks canceled.`,
      );
    });
}

interface ExportOptions extends OperatorOptions {
  skipRunning?: boolean;
}

/** `baton tenants export|import …` */
function addArchiveCommands(tenants: Command, cli: Cli): void {
  const { terminal } = cli;
  withOperatorOptions(tenants.command('export'))
    .description(
      'write the agents, schedules and tasks of a tenant to a file: NDJSON, without tokens and secrets',
    )
    .argument('<slug>', 'slug of the tenant')
    .argument('<file>', 'new file, such as acme.ndjson; - writes to standard output')
    .option('--skip-running', 'leave out tasks that are running or queued')
    .action(async (slug: string, file: string, options: ExportOptions) => {
      const { skipRunning = false, json } = options;
      const { intoFile, standardOutput } = await import('./backup.js');
      const written = await withOperatorApi(cli, options, async (api) => {
        const write = (out: Writable) => exportInto(api, slug, skipRunning, out);
        return file === '-' ? write(standardOutput(cli)) : intoFile(terminal, file, write);
      }).catch(inOwnWords);
      if (json && file !== '-') printValue(terminal, { slug, ...written });
      terminal.err(`The export is complete: ${countsOf(written.records)}.`);
      if (skipRunning && written.runningTasks > 0) {
        terminal.err(`Left out because they are running or queued: ${written.runningTasks} tasks.`);
      }
    });

  withOperatorOptions(tenants.command('import'))
    .description('make a new tenant from an export; its schedules are paused')
    .argument('<slug>', 'slug of the new tenant')
    .argument('<file>', 'file made by `baton tenants export`; - reads standard input')
    .action(async (slug: string, file: string, options: OperatorOptions) => {
      assertSlug(slug);
      const { opener } = await import('./backup.js');
      const { input, source } = counted(opener(cli, file)(), file);
      const work = () => withOperatorApi(cli, options, (api) => importFrom(api, slug, input));
      const imported = await withProgress(terminal, 'Importing', source, work).catch(inOwnWords);
      if (options.json) printValue(terminal, printed(imported));
      else terminal.out(`Tenant ${slug} (${imported.id}) is imported: ${countsOf(imported.records)}.`);
      const { secrets, paused_schedules: pausedSchedules } = imported;
      if (pausedSchedules > 0) {
        terminal.err(
          `${pausedSchedules} schedules are paused: npx baton schedules resume starts each again.`,
        );
      }
      if (secrets.length > 0) {
        terminal.err(`Set its secrets, whose values are not in the file: ${secrets.join(', ')}.`);
      }
      terminal.err(`Make its tokens: npx baton tokens create --tenant ${slug}.`);
    });
}

/** The first and the last line of an export. */
interface Exported {
  records: Record<string, number>;
  /** Secrets that are not in it. */
  secrets: string[];
  /** Tasks that were left out. */
  runningTasks: number;
}

/** Writes an export as it arrives. Rejects with an OperatorError if it breaks off: its last line says that it is complete. */
async function exportInto(
  api: OperatorApi,
  tenant: string,
  skipRunning: boolean,
  out: Writable,
): Promise<Exported> {
  const params = { path: { tenant }, query: { skip_running: skipRunning } };
  const lines = await answerOf(api.GET('/v1/admin/tenants/{tenant}/export', { params, parseAs: 'stream' }));
  let [begin, end] = ['', ''];
  const keepLines = async function* (chunks: AsyncIterable<Uint8Array>) {
    for await (const chunk of chunks) {
      const text = Buffer.from(chunk).toString('latin1');
      if (!begin.includes('\n') && begin.length < MAX_LINE) begin += text;
      end = (end + text).slice(-MAX_LINE);
      yield chunk;
    }
  };
  if (lines) await pipeline(Readable.fromWeb(lines), keepLines, out);
  const last = end.trimEnd().split('\n').at(-1) ?? '';
  if (!last.startsWith('{"kind":"end"')) throw new OperatorError('The export broke off: try again.');
  const { secrets } = JSON.parse(begin.split('\n', 1)[0] ?? '') as Pick<Exported, 'secrets'>;
  // An API of an earlier release does not say how many tasks are left out.
  const { records, runningTasks = 0 } = JSON.parse(last) as Pick<Exported, 'records'> & Partial<Exported>;
  return { records, secrets, runningTasks };
}

const importFrom = (api: OperatorApi, tenant: string, input: AsyncIterable<Uint8Array>) =>
  answerOf(
    api.POST('/v1/admin/tenants/{tenant}/import', {
      params: { path: { tenant } },
      headers: NDJSON,
      // The document says that it is a text. It is sent as a stream.
      body: Readable.toWeb(Readable.from(input)) as unknown as string,
      bodySerializer: (body) => body,
      duplex: 'half',
    }),
  );

/** The bytes of a file, and how many of them were read. */
function counted(bytes: AsyncIterable<Uint8Array>, file: string) {
  let read = 0;
  async function* input(): AsyncGenerator<Uint8Array> {
    for await (const chunk of bytes) {
      read += chunk.length;
      yield chunk;
    }
  }
  const source = { done: () => read, ...(file !== '-' && { total: statSync(file).size }) };
  return { input: input(), source };
}

const countsOf = (records: Record<string, number>): string => {
  const counts = Object.entries(records).filter(([, count]) => count > 0);
  return counts.map(([kind, count]) => `${kind} ${count}`).join(', ') || 'no records';
};

function assertReason(reason: string | undefined): void {
  if (reason === undefined || (reason.trim() !== '' && reason.length <= MAX_REASON)) return;
  throw new UsageError(`--reason must be 1 to ${MAX_REASON} characters long.`);
}

function assertSlug(slug: string): void {
  if (SLUG.test(slug)) return;
  throw new UsageError(
    `"${slug}" cannot name a tenant: use 1 to 63 lower-case letters, digits or hyphens, beginning and ending with a letter or digit.`,
  );
}

const rowOf = (tenant: Tenant): string[] => [
  tenant.slug,
  tenant.default_agent,
  formatTime(new Date(tenant.created_at)),
  (tenant.deleting_at && 'being deleted') ?? (tenant.suspended_at && 'suspended') ?? 'active',
  tenant.id,
];

const LIMIT_TITLES = ['limit', 'value', 'from', 'what'];

type LimitOptions = OperatorOptions & Partial<Record<LimitName, string>> & { default?: string[] };

/** `baton tenants limits …`: the limits of a tenant. */
function addLimitsCommand(tenants: Command, cli: Cli): void {
  const command = withOperatorOptions(tenants.command('limits'))
    .description('show or change the limits of a tenant')
    .argument('<slug>', 'slug of the tenant');
  for (const name of LIMIT_NAMES) {
    const { counts, required } = limitRule(name);
    command.option(`${optionOf(name)} <number>`, `${counts}${required ? '' : ', or none'}`);
  }
  command
    .option('--default <limits...>', 'reset these limits to the default, such as open-streams')
    .action((slug: string, options: LimitOptions) => limits(cli, slug, options));
}

async function limits(cli: Cli, slug: string, options: LimitOptions): Promise<void> {
  const { values, defaults } = readChange(options);
  const body = { ...values, ...Object.fromEntries(defaults.map((name) => [name, 'default' as const])) };
  const params = { path: { tenant: slug } };
  const { limits: all } = await withOperatorApi(cli, options, (api) =>
    answerOf(
      Object.keys(body).length > 0
        ? api.PATCH('/v1/admin/tenants/{tenant}/limits', { params, body })
        : api.GET('/v1/admin/tenants/{tenant}/limits', { params }),
    ),
  );
  if (options.json) printValue(cli.terminal, all);
  else
    printTable(
      cli.terminal,
      LIMIT_TITLES,
      LIMIT_NAMES.map((name) => limitRow(name, all[name])),
      '',
    );
}

function readChange(options: LimitOptions): LimitChange {
  const values: LimitOverrides = {};
  for (const name of LIMIT_NAMES) {
    const text = options[name];
    if (text !== undefined) Object.assign(values, { [name]: parseLimit(name, text) });
  }
  return { values, defaults: parseDefaults(options.default ?? [], values) };
}

const limitRow = (name: LimitName, { value, from, countedTasks }: OperatorSchemas['Limit']): string[] => [
  optionOf(name).slice('--'.length),
  value === null ? 'none' : String(value),
  from,
  `${limitRule(name).counts}${countedTasks === undefined ? '' : `: being counted (${String(countedTasks)} tasks so far)`}`,
];

/** What an operator changes at once. */
interface LimitChange {
  values: LimitOverrides;
  /** Limits that go back to the default. */
  defaults: readonly LimitName[];
}

/** `openStreams` as an option: `--open-streams`. */
const optionOf = (name: LimitName): string =>
  `--${name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;

/** A number within the limit's bounds, or null for `none`. Throws OperatorError. */
function parseLimit(name: LimitName, text: string): number | null {
  const { min, max, fractions, required } = limitRule(name);
  if (text === 'none' && !required) return null;
  const value = (fractions ? /^\d{1,5}(\.\d{1,6})?$/ : /^\d{1,15}$/).test(text) ? Number(text) : NaN;
  if (value >= min && value <= max) return value;
  const kind = fractions ? 'a number of days, such as 30 or 0.5' : `a whole number from ${min} to ${max}`;
  throw new UsageError(`${optionOf(name)}: "${text}" is not ${kind}${required ? '' : ', or none'}.`);
}

/** The limits that go back to the default: `open-streams`, several apart or with commas. Throws OperatorError. */
function parseDefaults(texts: readonly string[], set: LimitOverrides): LimitName[] {
  const names = texts.flatMap((text) => text.split(',')).map(parseName);
  const both = names.find((name) => name in set);
  if (both === undefined) return names;
  throw new UsageError(`${optionOf(both)} is set and also named by --default: leave one of them out.`);
}

function parseName(text: string): LimitName {
  const wanted = `--${text.trim().replace(/^--/, '')}`;
  const found = LIMIT_NAMES.find((name) => optionOf(name) === wanted || `--${name}` === wanted);
  if (found) return found;
  const known = LIMIT_NAMES.map((name) => optionOf(name).slice(2)).join(', ');
  throw new UsageError(`--default: "${text}" is not a limit: choose from ${known}.`);
}

interface EgressOptions extends OperatorOptions {
  allow?: string[];
  deny?: string[];
}

/** `baton tenants egress …`: where the agents of a tenant may call. */
function addEgressCommand(tenants: Command, cli: Cli): void {
  withOperatorOptions(tenants.command('egress'))
    .description('show or change the addresses that agents of a tenant may call')
    .argument('<slug>', 'slug of the tenant')
    .option('--allow <patterns...>', 'only these: api.example.com, *.example.com:443, 10.0.0.0/8; or all')
    .option('--deny <patterns...>', 'never these, even if --allow has them; or none')
    .action(async (slug: string, options: EgressOptions) => {
      const change = {
        ...(options.allow && { egress_allow: parsePatterns(options.allow, 'all') }),
        ...(options.deny && { egress_deny: parsePatterns(options.deny, 'none') }),
      };
      const isChange = Object.keys(change).length > 0;
      const params = { path: { tenant: slug } };
      const tenant = await withOperatorApi(cli, options, (api) =>
        isChange
          ? changeTenant(api, slug, change)
          : answerOf(api.GET('/v1/admin/tenants/{tenant}', { params })),
      ).catch(nameLists);
      const { egress_allow: allow, egress_deny: deny } = tenant;
      if (options.json) return void printValue(cli.terminal, { allow, deny });
      printFields(
        cli.terminal,
        [
          ['allow', allow.join(', ') || 'all'],
          ['deny', deny.join(', ') || 'none'],
        ],
        8,
      );
    });
}

/** Several patterns apart or with commas, or the word for an empty list. */
function parsePatterns(texts: readonly string[], empty: 'all' | 'none'): string[] {
  const patterns = texts
    .flatMap((text) => text.split(','))
    .map((text) => text.trim())
    .filter(Boolean);
  return patterns.length === 1 && patterns[0] === empty ? [] : patterns;
}

/** Names the options instead of the fields of the API. */
function nameLists(error: unknown): never {
  const { status, reason = '' } = refusalOf(error) ?? {};
  if (status !== 400) throw error;
  throw new UsageError(
    `${reason.replace(/^egress_allow(\[\d+\])?/, '--allow').replace(/^egress_deny(\[\d+\])?/, '--deny')}.`,
  );
}
