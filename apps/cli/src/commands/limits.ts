import type { LimitOverrides, Tenant } from '@baton/database';
import { LIMIT_NAMES, LIMITS, type LimitName } from '@baton/identity';
import type { Command } from 'commander';
import { announce } from '../announce.js';
import { type Cli, JSON_OPTION, type JsonOption } from '../cli.js';
import { type Platform, withPlatform } from '../connection.js';
import { type LimitChange, optionOf, parseDefaults, parseLimit } from '../limit-option.js';
import { printJson, printTable } from '../output.js';
import { requireTenant, unknownTenant } from '../require-tenant.js';

const TITLES = ['limit', 'value', 'from', 'what'];

type Options = JsonOption & Partial<Record<LimitName, string>> & { default?: string[] };

/** One limit as it is in force. */
interface Limit {
  /** null = no limit. */
  value: number | null;
  /** `set` for this tenant, the `default` of the environment, or `none`: nobody has set anything. */
  from: 'set' | 'default' | 'none';
  /** Of `storedBytes` while it is being counted, and so refuses nothing: the tasks that have been counted. */
  countedTasks?: number;
}

/** `baton tenants limits …`: what a tenant may use. */
export function addLimitsCommand(tenants: Command, cli: Cli): void {
  const command = tenants
    .command('limits')
    .description('show what a tenant may use, or change it')
    .argument('<slug>', 'the tenant');
  for (const name of LIMIT_NAMES) {
    const { what, required } = LIMITS[name];
    command.option(`${optionOf(name)} <number>`, `${what}${required ? '' : ', or none'}`);
  }
  command
    .option('--default <limits...>', 'limits that go back to the default, such as open-streams')
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
        TITLES,
        LIMIT_NAMES.map((name) => rowOf(name, all[name])),
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
  return (await tenants.setLimits(slug, values, defaults)) ?? unknownTenant(slug);
}

function limitsOf({ limits: set }: Tenant, { environment }: Platform): Record<LimitName, Limit> {
  const defaults: LimitOverrides = { ...environment.defaultLimits, weight: 1 };
  const limitOf = (name: LimitName): Limit => {
    const [own, fallback] = [set[name], defaults[name] ?? null];
    if (own !== undefined) return { value: own, from: 'set' };
    return { value: fallback, from: fallback === null ? 'none' : 'default' };
  };
  return Object.fromEntries(LIMIT_NAMES.map((name) => [name, limitOf(name)])) as Record<LimitName, Limit>;
}

const rowOf = (name: LimitName, { value, from, countedTasks }: Limit): string[] => [
  optionOf(name).slice('--'.length),
  value === null ? 'none' : String(value),
  from,
  `${LIMITS[name].what}${countedTasks === undefined ? '' : `: being counted (${String(countedTasks)} tasks so far)`}`,
];
