import { statSync } from 'node:fs';
import { ProtocolError, SLUG } from '@baton/a2a';
import { LIMIT_NAMES, type LimitName, type LimitOverrides, limitRule } from '@baton/config';
import type { Tenant } from '@baton/database';
import type { LimitInForce, TenantChange } from '@baton/tasks';
import type { Command } from 'commander';
import type { Writable } from 'node:stream';
import { type Cli, type JsonOption } from '../cli.js';
import { NotFoundError } from '../not-found-error.js';
import { UsageError } from '../usage-error.js';
import { OperatorError } from '../operator-error.js';
import { type OperatorOptions, withOperatorOptions } from '../operator/admin-target.js';
import { withTenants } from '../operator/operations.js';
import type { TenantOperations } from '../operator/tenant-operations.js';
import { formatTime, printFields, printValue, printTable } from '../output.js';
import { unknownTenant } from '../platform.js';
import { withProgress } from '../progress.js';

/** Characters of the reason of a suspension. */
const MAX_REASON = 200;
const TITLES = ['slug', 'default agent', 'created', 'state', 'id'];

/** The options of every command here. */
type Common = JsonOption & OperatorOptions;

/** `baton tenants …`: the customers or teams that Baton serves. */
export function addTenantCommands(program: Command, cli: Cli): void {
  const { terminal } = cli;
  const tenants = program.command('tenants').description('tenants; each is isolated from all others');

  const print = (tenant: Tenant, { json }: JsonOption) =>
    json ? printValue(terminal, recordOf(tenant)) : printTable(terminal, TITLES, [rowOf(tenant)], '');

  withOperatorOptions(tenants.command('create'))
    .description('create a tenant')
    .argument('<slug>', 'name: lower-case letters, digits and hyphens')
    .action(async (slug: string, options: Common) => {
      assertSlug(slug);
      print(await use(cli, options, slug, (operations) => operations.create(slug)), options);
    });

  withOperatorOptions(tenants.command('list'))
    .description('list the tenants, with the bytes that they keep in the database')
    .option('--largest', 'those first that keep most')
    .action(async (options: Common & { largest?: boolean }) => {
      const bySlug = await withTenants(cli, options, (operations) => operations.list());
      const all = options.largest
        ? bySlug.toSorted((one, other) => (other.storedBytes ?? 0) - (one.storedBytes ?? 0))
        : bySlug;
      const rows = all.map((tenant) => [...rowOf(tenant), String(tenant.storedBytes ?? 'not counted yet')]);
      if (options.json) printValue(terminal, all.map(recordOf));
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
    .action(async (slug: string, options: Common & TenantChange) => {
      const { defaultAgent, indexModel, indexModelUrl } = options;
      if (defaultAgent === undefined && indexModel === undefined) {
        throw new UsageError(
          'Name what to change: --default-agent <agent> or --index-model <provider/model>.',
        );
      }
      const change = {
        ...(defaultAgent !== undefined && { defaultAgent }),
        ...(indexModel !== undefined && { indexModel }),
        ...(indexModelUrl !== undefined && { indexModelUrl }),
      };
      const changed = use(cli, options, slug, (operations) => operations.change(slug, change));
      print(await changed.catch(nameOptions(slug, change)), options);
    });

  addUsageCommand(tenants, cli);
  addLifecycleCommands(tenants, cli);
  addArchiveCommands(tenants, cli);
  addLimitsCommand(tenants, cli);
  addEgressCommand(tenants, cli);
}

/** Like `withTenants`, for one tenant: says how to find the slug if there is none. */
async function use<T>(
  cli: Cli,
  options: OperatorOptions,
  slug: string,
  work: (operations: TenantOperations) => Promise<T>,
): Promise<T> {
  return withTenants(cli, options, work).catch((error: unknown) => {
    if (error instanceof ProtocolError && error.kind === 'not-found') unknownTenant(slug);
    if (error instanceof ProtocolError && error.kind === 'conflict' && error.message.endsWith('exists')) {
      throw new OperatorError(`${error.message}: choose another slug.`);
    }
    throw error;
  });
}

/** Names the options instead of the fields of the API. */
const nameOptions =
  (slug: string, { defaultAgent }: TenantChange) =>
  (error: unknown): never => {
    if (!(error instanceof ProtocolError) || error.kind !== 'invalid-params') throw error;
    if (error.message.startsWith('default_agent:')) {
      throw new NotFoundError(
        `Tenant "${slug}" has no agent "${defaultAgent ?? ''}": npx baton agents list --tenant ${slug} shows its agents.`,
      );
    }
    const named = error.message
      .replace('index_model:', '--index-model')
      .replace('index_model_url:', '--index-model-url');
    throw new UsageError(`${named}.`);
  };

/** `baton tenants usage …` */
function addUsageCommand(tenants: Command, cli: Cli): void {
  withOperatorOptions(tenants.command('usage'))
    .description('show the runs, stored bytes and model tokens of a tenant')
    .argument('<slug>', 'slug of the tenant')
    .action(async (slug: string, options: Common) => {
      const usage = await use(cli, options, slug, (operations) => operations.usage(slug));
      if (options.json) return void printValue(cli.terminal, usage);
      const { storedBytes, queuedRuns, runningRuns, suspendedRuns, deadLetters, days } = usage;
      printFields(
        cli.terminal,
        [
          ['stored bytes', storedBytes === null ? 'not counted yet' : String(storedBytes)],
          ['runs', `${queuedRuns} queued, ${runningRuns} running, ${suspendedRuns} suspended`],
          ['dead letters', String(deadLetters)],
          ...days.map(
            ({ day, inputTokens, outputTokens }) =>
              [day, `${inputTokens} input tokens, ${outputTokens} output tokens`] as const,
          ),
        ],
        14,
      );
    });
}

interface SuspendOptions extends Common {
  reason?: string;
  stop?: boolean;
}

/** `baton tenants suspend|resume|delete …` */
function addLifecycleCommands(tenants: Command, cli: Cli): void {
  const { terminal } = cli;
  withOperatorOptions(tenants.command('suspend'))
    .description('refuse all calls of a tenant and fire none of its schedules; its running tasks go on')
    .argument('<slug>', 'slug of the tenant')
    .option('--reason <text>', 'reason for its callers')
    .option('--stop', 'also cancel its running and queued tasks')
    .action(async (slug: string, options: SuspendOptions) => {
      const { reason, stop = false, json } = options;
      assertReason(reason);
      const suspended = await use(cli, options, slug, (operations) =>
        operations.suspend(slug, { ...(reason !== undefined && { reason }), stop }),
      );
      if (json) return void printValue(terminal, { ...suspended, tenant: recordOf(suspended.tenant) });
      const stopped = stop ? `; canceled tasks: ${suspended.canceledTasks}` : '';
      terminal.out(`Tenant ${slug} is suspended${stopped}.`);
    });

  withOperatorOptions(tenants.command('resume'))
    .description('end the suspension of a tenant')
    .argument('<slug>', 'slug of the tenant')
    .action(async (slug: string, options: Common) => {
      const tenant = await use(cli, options, slug, (operations) => operations.resume(slug));
      if (options.json) printValue(terminal, recordOf(tenant));
      else terminal.out(`Tenant ${slug} is resumed.`);
    });

  withOperatorOptions(tenants.command('delete'))
    .description('DELETE a tenant and all its data; run it again after an interruption')
    .argument('<slug>', 'slug of the tenant')
    .option('--yes', 'really delete it')
    .action(async (slug: string, options: Common & { yes?: boolean }) => {
      const { yes, json } = options;
      if (!yes) {
        throw new UsageError(
          `This deletes all tokens, agents, secrets, schedules and tasks of "${slug}" for good: add --yes.`,
        );
      }
      const deleted = await use(cli, options, slug, (operations) =>
        operations.delete(slug, (table, rows) => terminal.err(`${table}: ${rows} rows deleted`)),
      );
      if (json) return void printValue(terminal, deleted);
      const rows = Object.values(deleted.rows).reduce((sum, count) => sum + count, 0);
      terminal.out(
        `Tenant ${slug} (${deleted.id}) is deleted: ${rows} rows, ${deleted.canceledTasks} running tasks canceled.`,
      );
    });
}

interface ExportOptions extends Common {
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
      const written = await use(cli, options, slug, async (operations) => {
        const write = (out: Writable) => operations.export(slug, out, { skipRunning });
        return file === '-' ? write(standardOutput(cli)) : intoFile(terminal, file, write);
      });
      if (json && file !== '-') printValue(terminal, written);
      terminal.err(`The export is complete: ${countsOf(written.records)}.`);
      if (skipRunning && written.runningTasks > 0) {
        terminal.err(`Left out because they are running or queued: ${written.runningTasks} tasks.`);
      }
    });

  withOperatorOptions(tenants.command('import'))
    .description('make a new tenant from an export; its schedules are paused')
    .argument('<slug>', 'slug of the new tenant')
    .argument('<file>', 'file made by `baton tenants export`; - reads standard input')
    .action(async (slug: string, file: string, options: Common) => {
      assertSlug(slug);
      const { opener } = await import('./backup.js');
      const { input, source } = counted(opener(cli, file)(), file);
      const work = () => withTenants(cli, options, (operations) => operations.import(slug, input));
      const imported = await withProgress(terminal, 'Importing', source, work);
      if (options.json) printValue(terminal, imported);
      else terminal.out(`Tenant ${slug} (${imported.id}) is imported: ${countsOf(imported.records)}.`);
      const { secrets, pausedSchedules } = imported;
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

/** The limits have a command of their own. */
const recordOf = ({
  limits: _limits,
  predatesRetention: _predatesRetention,
  ...tenant
}: Tenant): Omit<Tenant, 'limits' | 'predatesRetention'> => tenant;

const rowOf = ({ slug, defaultAgent, createdAt, suspendedAt, deletingAt, id }: Tenant): string[] => [
  slug,
  defaultAgent,
  formatTime(createdAt),
  (deletingAt && 'being deleted') ?? (suspendedAt && 'suspended') ?? 'active',
  id,
];

const LIMIT_TITLES = ['limit', 'value', 'from', 'what'];

type Options = Common & Partial<Record<LimitName, string>> & { default?: string[] };

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
    .action((slug: string, options: Options) => limits(cli, slug, options));
}

async function limits(cli: Cli, slug: string, options: Options): Promise<void> {
  const { values, defaults } = readChange(options);
  const isChange = Object.keys(values).length + defaults.length > 0;
  const all = await use(cli, options, slug, (operations) =>
    isChange ? operations.changeLimits(slug, values, defaults) : operations.limits(slug),
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

function readChange(options: Options): LimitChange {
  const values: LimitOverrides = {};
  for (const name of LIMIT_NAMES) {
    const text = options[name];
    if (text !== undefined) Object.assign(values, { [name]: parseLimit(name, text) });
  }
  return { values, defaults: parseDefaults(options.default ?? [], values) };
}

const limitRow = (name: LimitName, { value, from, countedTasks }: LimitInForce): string[] => [
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

interface EgressOptions extends Common {
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
        ...(options.allow && { egressAllow: parsePatterns(options.allow, 'all') }),
        ...(options.deny && { egressDeny: parsePatterns(options.deny, 'none') }),
      };
      const isChange = Object.keys(change).length > 0;
      const tenant = await use(cli, options, slug, (operations) =>
        isChange ? operations.change(slug, change) : operations.find(slug),
      ).catch(nameLists);
      const { egressAllow: allow, egressDeny: deny } = tenant;
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
  if (!(error instanceof ProtocolError) || error.kind !== 'invalid-params') throw error;
  throw new UsageError(
    `${error.message.replace(/^egress_allow(\[\d+\])?/, '--allow').replace(/^egress_deny(\[\d+\])?/, '--deny')}.`,
  );
}
