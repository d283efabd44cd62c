import { SLUG } from '@baton/a2a';
import { LIMIT_NAMES, type LimitName, type LimitOverrides, limitRule } from '@baton/config';
import { OPERATOR_ACTOR, type Tenant } from '@baton/database';
import type { TenantLifecycle } from '@baton/tasks';
import type { Command } from 'commander';
import type { Writable } from 'node:stream';
import { type Cli, JSON_OPTION, type JsonOption, OperatorError } from '../cli.js';
import { formatTime, printJson, printTable } from '../output.js';
import {
  announce,
  findEnvironment,
  type Platform,
  requireTenant,
  unknownTenant,
  withDatabase,
  withPlatform,
} from '../platform.js';

/** Characters of the reason of a suspension. */
const MAX_REASON = 200;
const TITLES = ['slug', 'default agent', 'created (utc)', 'state', 'id'];

/** `baton tenants …`: the customers or teams that Baton serves. */
export function addTenantCommands(program: Command, cli: Cli): void {
  const { source, terminal } = cli;
  const tenants = program.command('tenants').description('tenants; each is isolated from all others');

  const print = (tenant: Tenant, { json }: JsonOption) =>
    json ? printJson(terminal, recordOf(tenant)) : printTable(terminal, TITLES, [rowOf(tenant)], '');

  tenants
    .command('create')
    .description('create a tenant')
    .argument('<slug>', 'name: lower-case letters, digits and hyphens')
    .option(...JSON_OPTION)
    .action(async (slug: string, options: JsonOption) => {
      assertSlug(slug);
      print(await withPlatform(source, ({ tenants }) => tenants.create(slug, OPERATOR_ACTOR)), options);
    });

  tenants
    .command('list')
    .description('list the tenants')
    .option(...JSON_OPTION)
    .action(async ({ json }: JsonOption) => {
      const all = await withPlatform(source, ({ tenants }) => tenants.list());
      if (json) printJson(terminal, all.map(recordOf));
      else printTable(terminal, TITLES, all.map(rowOf), 'No tenants yet: npx baton tenants create <slug>');
    });

  tenants
    .command('set')
    .description('change settings of a tenant')
    .argument('<slug>', 'slug of the tenant')
    .option('--default-agent <agent>', 'agent that answers calls that name no agent')
    .option(
      '--index-model <model>',
      'model with which the agent `index` routes: provider/model, none, or default (INDEX_MODEL)',
    )
    .option('--index-model-url <url>', 'URL of that model, if not the usual one of its provider')
    .option(...JSON_OPTION)
    .action(async (slug: string, options: JsonOption & Settings) => {
      print(await withPlatform(source, (platform) => setTenant(platform, slug, options)), options);
    });

  addLifecycleCommands(tenants, cli);
  addArchiveCommands(tenants, cli);
  addLimitsCommand(tenants, cli);
}

interface SuspendOptions extends JsonOption {
  reason?: string;
  stop?: boolean;
}

/** `baton tenants suspend|resume|delete …` */
function addLifecycleCommands(tenants: Command, cli: Cli): void {
  const { terminal } = cli;
  tenants
    .command('suspend')
    .description('refuse all calls of a tenant and fire none of its schedules; its running tasks go on')
    .argument('<slug>', 'slug of the tenant')
    .option('--reason <text>', 'what its callers are told')
    .option('--stop', 'also cancel its running and queued tasks')
    .option(...JSON_OPTION)
    .action(async (slug: string, { reason, stop = false, json }: SuspendOptions) => {
      assertReason(reason);
      const suspended = await useLifecycle(cli, (lifecycle) =>
        lifecycle.suspend(slug, { ...(reason !== undefined && { reason }), stop }, OPERATOR_ACTOR),
      );
      if (json) return void printJson(terminal, { ...suspended, tenant: recordOf(suspended.tenant) });
      const stopped = stop ? `; canceled tasks: ${suspended.canceledTasks}` : '';
      terminal.out(`Tenant ${slug} is suspended${stopped}.`);
    });

  tenants
    .command('resume')
    .description('end the suspension of a tenant')
    .argument('<slug>', 'slug of the tenant')
    .option(...JSON_OPTION)
    .action(async (slug: string, { json }: JsonOption) => {
      const tenant = await useLifecycle(cli, (lifecycle) => lifecycle.resume(slug, OPERATOR_ACTOR));
      if (json) printJson(terminal, recordOf(tenant));
      else terminal.out(`Tenant ${slug} is resumed.`);
    });

  tenants
    .command('delete')
    .description('DELETE a tenant and everything of it; run it again if it was interrupted')
    .argument('<slug>', 'slug of the tenant')
    .option('--yes', 'really delete it')
    .option(...JSON_OPTION)
    .action(async (slug: string, { yes, json }: JsonOption & { yes?: boolean }) => {
      if (!yes) {
        throw new OperatorError(
          `This deletes all tokens, agents, secrets, schedules and tasks of "${slug}" for good: add --yes.`,
        );
      }
      const deleted = await useLifecycle(cli, (lifecycle) =>
        lifecycle.delete(
          slug,
          (table, rows) => terminal.err(`${table}: ${rows} rows deleted`),
          OPERATOR_ACTOR,
        ),
      );
      if (json) return void printJson(terminal, deleted);
      const rows = Object.values(deleted.rows).reduce((sum, count) => sum + count, 0);
      terminal.out(
        `Tenant ${slug} (${deleted.id}) is deleted: ${rows} rows, ${deleted.canceledTasks} running tasks canceled.`,
      );
    });
}

interface ExportOptions extends JsonOption {
  skipRunning?: boolean;
}

/** `baton tenants export|import …` */
function addArchiveCommands(tenants: Command, cli: Cli): void {
  const { terminal, source } = cli;
  tenants
    .command('export')
    .description(
      'write the agents, schedules and tasks of a tenant to a file: NDJSON, without tokens and secrets',
    )
    .argument('<slug>', 'slug of the tenant')
    .argument('<file>', 'new file, such as acme.ndjson; - writes to standard output')
    .option('--skip-running', 'leave out tasks that are running or queued')
    .option(...JSON_OPTION)
    .action(async (slug: string, file: string, { skipRunning = false, json }: ExportOptions) => {
      const { AuditStore, exportTenant } = await import('@baton/database');
      const { intoFile, standardOutput } = await import('./backup.js');
      const written = await withDatabase(source, async ({ tenants, environment, database }) => {
        const { id } = await requireTenant(tenants, slug);
        // Before a row has left.
        await new AuditStore(database).write(id, {
          action: 'tenant.export',
          target: { kind: 'tenant', name: slug },
          by: OPERATOR_ACTOR,
        });
        const write = (out: Writable) => exportTenant(environment.databaseUrl, id, out, { skipRunning });
        return file === '-' ? write(standardOutput(cli)) : intoFile(file, write);
      });
      if (json && file !== '-') printJson(terminal, written);
      terminal.err(`The export is complete: ${countsOf(written.records)}.`);
      if (skipRunning && written.runningTasks > 0) {
        terminal.err(`Left out because they are running or queued: ${written.runningTasks} tasks.`);
      }
    });

  tenants
    .command('import')
    .description('make a new tenant of the export of another one; its schedules are paused')
    .argument('<slug>', 'slug of the new tenant')
    .argument('<file>', 'file made by `baton tenants export`; - reads standard input')
    .option(...JSON_OPTION)
    .action(async (slug: string, file: string, { json }: JsonOption) => {
      assertSlug(slug);
      const { importTenant } = await import('@baton/database');
      const { opener } = await import('./backup.js');
      const { databaseUrl } = findEnvironment(source);
      const imported = await importTenant(databaseUrl, slug, opener(cli, file)(), OPERATOR_ACTOR);
      if (json) printJson(terminal, imported);
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

const countsOf = (records: Record<string, number>): string => {
  const counts = Object.entries(records).filter(([, count]) => count > 0);
  return counts.map(([kind, count]) => `${kind} ${count}`).join(', ') || 'no records';
};

/** Loaded only here: the other commands start faster without the use cases. */
async function useLifecycle<T>(cli: Cli, work: (lifecycle: TenantLifecycle) => Promise<T>): Promise<T> {
  const { withTenantLifecycle } = await import('../tenant-lifecycle.js');
  return withTenantLifecycle(cli, work);
}

function assertReason(reason: string | undefined): void {
  if (reason === undefined || (reason.trim() !== '' && reason.length <= MAX_REASON)) return;
  throw new OperatorError(`--reason must be 1 to ${MAX_REASON} characters long.`);
}

interface Settings {
  defaultAgent?: string;
  indexModel?: string;
  indexModelUrl?: string;
}

async function setTenant({ tenants, agents }: Platform, slug: string, settings: Settings): Promise<Tenant> {
  const { defaultAgent, indexModel, indexModelUrl } = settings;
  if (defaultAgent === undefined && indexModel === undefined) {
    throw new OperatorError(
      'Name what to change: --default-agent <agent> or --index-model <provider/model>.',
    );
  }
  const { id } = await requireTenant(tenants, slug);
  // Loaded here only: the other commands start faster without the agents.
  const { requireAgent } = await import('../agent-options.js');
  const { readIndexModel } = await import('../agent-options.js');
  const agent =
    defaultAgent === undefined ? undefined : await requireAgent(agents, { id, slug }, defaultAgent);
  const model = indexModel === undefined ? {} : readIndexModel(indexModel, indexModelUrl);
  const changes = { ...(agent && { defaultAgent: agent.slug }), ...model };
  return (await tenants.set(slug, changes, OPERATOR_ACTOR)) ?? unknownTenant(slug);
}

function assertSlug(slug: string): void {
  if (SLUG.test(slug)) return;
  throw new OperatorError(
    `"${slug}" cannot name a tenant: use 1 to 63 lower-case letters, digits or hyphens, beginning and ending with a letter or digit.`,
  );
}

/** The limits have a command of their own. */
const recordOf = ({ limits: _, ...tenant }: Tenant): Omit<Tenant, 'limits'> => tenant;

const rowOf = ({ slug, defaultAgent, createdAt, suspendedAt, deletingAt, id }: Tenant): string[] => [
  slug,
  defaultAgent,
  formatTime(createdAt),
  (deletingAt && 'being deleted') ?? (suspendedAt && 'suspended') ?? 'active',
  id,
];

const LIMIT_TITLES = ['limit', 'value', 'from', 'what'];

type Options = JsonOption & Partial<Record<LimitName, string>> & { default?: string[] };

/** One limit as it is in force. */
interface Limit {
  /** null = no limit. */
  value: number | null;
  /** `set` for this tenant, the `default` of the environment, or `none` if neither is set. */
  from: 'set' | 'default' | 'none';
  /** Of `storedBytes` while its tasks are being counted: how many are counted. Until then it refuses nothing. */
  countedTasks?: number;
}

/** `baton tenants limits …`: the limits of a tenant. */
function addLimitsCommand(tenants: Command, cli: Cli): void {
  const command = tenants
    .command('limits')
    .description('show or change the limits of a tenant')
    .argument('<slug>', 'slug of the tenant');
  for (const name of LIMIT_NAMES) {
    const { counts, required } = limitRule(name);
    command.option(`${optionOf(name)} <number>`, `${counts}${required ? '' : ', or none'}`);
  }
  command
    .option('--default <limits...>', 'reset these limits to the default, such as open-streams')
    .option(...JSON_OPTION)
    .action((slug: string, options: Options) => limits(cli, slug, options));
}

async function limits({ source, terminal }: Cli, slug: string, options: Options): Promise<void> {
  const change = readChange(options);
  await withPlatform(source, async (platform) => {
    const isChange = Object.keys(change.values).length + change.defaults.length > 0;
    const tenant = isChange
      ? await changeLimits(platform, slug, change)
      : await requireTenant(platform.tenants, slug);
    const all = limitsOf(tenant, platform);
    const countedTasks = await platform.tenants.countedTasks(tenant.id);
    if (all.storedBytes.value !== null && countedTasks !== undefined)
      Object.assign(all.storedBytes, { countedTasks });
    if (options.json) printJson(terminal, all);
    else
      printTable(
        terminal,
        LIMIT_TITLES,
        LIMIT_NAMES.map((name) => limitRow(name, all[name])),
        '',
      );
    if (isChange) {
      await announce(terminal, platform.environment, { type: 'limits-changed', tenantId: tenant.id });
    }
  });
}

function readChange(options: Options): LimitChange {
  const values: LimitOverrides = {};
  for (const name of LIMIT_NAMES) {
    const text = options[name];
    if (text !== undefined) Object.assign(values, { [name]: parseLimit(name, text) });
  }
  return { values, defaults: parseDefaults(options.default ?? [], values) };
}

async function changeLimits(
  { tenants }: Platform,
  slug: string,
  { values, defaults }: LimitChange,
): Promise<Tenant> {
  return (await tenants.setLimits(slug, values, defaults, OPERATOR_ACTOR)) ?? unknownTenant(slug);
}

function limitsOf({ limits: set }: Tenant, { environment }: Platform): Record<LimitName, Limit> {
  const limitOf = (name: LimitName): Limit => {
    const [own, fallback] = [set[name], environment.defaultLimits[name]];
    if (own !== undefined) return { value: own, from: 'set' };
    return { value: fallback, from: fallback === null ? 'none' : 'default' };
  };
  return Object.fromEntries(LIMIT_NAMES.map((name) => [name, limitOf(name)])) as Record<LimitName, Limit>;
}

const limitRow = (name: LimitName, { value, from, countedTasks }: Limit): string[] => [
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
  throw new OperatorError(`${optionOf(name)}: "${text}" is not ${kind}${required ? '' : ', or none'}.`);
}

/** The limits that go back to the default: `open-streams`, several apart or with commas. Throws OperatorError. */
function parseDefaults(texts: readonly string[], set: LimitOverrides): LimitName[] {
  const names = texts.flatMap((text) => text.split(',')).map(parseName);
  const both = names.find((name) => name in set);
  if (both === undefined) return names;
  throw new OperatorError(`${optionOf(both)} is set and also named by --default: leave one of them out.`);
}

function parseName(text: string): LimitName {
  const wanted = `--${text.trim().replace(/^--/, '')}`;
  const found = LIMIT_NAMES.find((name) => optionOf(name) === wanted || `--${name}` === wanted);
  if (found) return found;
  const known = LIMIT_NAMES.map((name) => optionOf(name).slice(2)).join(', ');
  throw new OperatorError(`--default: "${text}" is not a limit: choose from ${known}.`);
}
