import { LIMIT_NAMES, type LimitName, type LimitOverrides, limitRule } from '@baton/config';
import type { OperatorSchemas } from '@baton/contract';
import type { Command } from 'commander';
import { answerOf } from '../api.js';
import { type Cli } from '../cli.js';
import { type OperatorOptions, withOperatorApi, withOperatorOptions } from '../operator/operator-api.js';
import { printTable, printValue } from '../output.js';
import { UsageError } from '../usage-error.js';

const LIMIT_TITLES = ['limit', 'value', 'from', 'what'];

type LimitOptions = OperatorOptions & Partial<Record<LimitName, string>> & { default?: string[] };

/** `baton tenants limits …`: the limits of a tenant. */
export function addTenantLimitsCommand(tenants: Command, cli: Cli): void {
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
