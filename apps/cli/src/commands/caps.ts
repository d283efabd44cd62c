import type { OperatorSchemas, TenantSchemas } from '@baton/contract';
import type { Command } from 'commander';
import { answerOf, type ServerOptions, tenantApi } from '../api.js';
import { type Cli, JSON_OPTION } from '../cli.js';
import { type OperatorOptions, withOperatorApi, withOperatorOptions } from '../operator/operator-api.js';
import { type Terminal, printTable, printValue } from '../output.js';
import { TOKEN_OPTION, URL_OPTION } from '../server.js';
import { UsageError } from '../usage-error.js';
import { choice } from '../options.js';

type Cap = TenantSchemas['SpendingCap'];
type Period = Cap['period'];

const TITLES = ['id', 'of', 'period', 'used', 'amount', 'most used by', 'at the limit', 'set by'];
const KINDS: Cap['of'][] = ['tenant', 'agent', 'caller', 'token', 'schedule', 'task'];
const PERIODS = ['day', 'week', 'month'] as const;

interface SetOptions extends ServerOptions {
  period: Period;
  amount: string;
  onLimit: Cap['on_limit'];
}

interface OperatorCapOptions extends OperatorOptions {
  period: (typeof PERIODS)[number];
  amount?: string;
  remove?: boolean;
}

/** `baton caps …`: spending caps of a tenant, and of its agents, callers, tokens and schedules. */
export function addCapCommands(program: Command, cli: Cli): void {
  const caps = program
    .command('caps')
    .description('spending caps of a tenant, its agents, callers and tasks');
  const add = (name: string, description: string): Command =>
    caps
      .command(name)
      .description(description)
      .option(...URL_OPTION)
      .option(...TOKEN_OPTION)
      .option(...JSON_OPTION);
  add('list', 'list the caps, and what is used of them').action((options: ServerOptions) =>
    list(cli, options),
  );
  add('set', 'set a cap, or change its amount; needs a token with `admin`')
    .argument('<of>', `what the cap bounds: ${KINDS.join(', ')}`)
    .argument(
      '[subject]',
      'which one: an agent, schedule or token, the key of a caller, or * for each of them',
      '',
    )
    .requiredOption('--amount <amount>', 'in the currency of the prices, such as 2.50')
    .addOption(
      choice('--period <period>', 'for how long it counts; a task tree for its life', PERIODS, 'day'),
    )
    .addOption(
      choice(
        '--on-limit <what>',
        'what a task does whose call has no room: fail, or ask a person',
        ['fail', 'ask'],
        'fail',
      ),
    )
    .action((of: string, subject: string, options: SetOptions) => set(cli, of, subject, options));
  add('delete', 'delete a cap; needs a token with `admin`')
    .argument('<id>', 'id of the cap')
    .action((id: string, options: ServerOptions) => remove(cli, id, options));
}

/** `baton tenants caps …`: spending caps of a tenant that the operator sets. */
export function addTenantCapsCommand(tenants: Command, cli: Cli): void {
  withOperatorOptions(tenants.command('caps'))
    .description('show or change the spending caps of a tenant; the tenant cannot raise them')
    .argument('<slug>', 'slug of the tenant')
    .addOption(choice('--period <period>', 'of the cap to change', PERIODS, 'month'))
    .option('--amount <amount>', 'in the currency of the prices, such as 500')
    .option('--remove', 'remove the cap of this period')
    .action((slug: string, options: OperatorCapOptions) => ofTenant(cli, slug, options));
}

async function list(cli: Cli, options: ServerOptions): Promise<void> {
  const found = await answerOf(tenantApi(cli, options).GET('/v1/spending-caps'));
  if (options.json) printValue(cli.terminal, found);
  else
    print(cli.terminal, found, 'No spending caps yet: npx baton caps set tenant --amount 100 --period month');
}

async function set(cli: Cli, of: string, subject: string, options: SetOptions): Promise<void> {
  const kind = KINDS.find((each) => each === of);
  if (!kind) throw new UsageError(`"${of}" has no spending cap: choose from ${KINDS.join(', ')}.`);
  const period = kind === 'task' ? 'life' : options.period;
  const body = { of: kind, subject, period, amount: options.amount, on_limit: options.onLimit };
  const cap = await answerOf(tenantApi(cli, options).PUT('/v1/spending-caps', { body }));
  if (options.json) return void printValue(cli.terminal, cap);
  cli.terminal.out(
    `${nameOf(cap)} may spend ${cap.amount}${cap.period === 'life' ? '' : ` per ${cap.period}`}. It has used ${cap.used}.`,
  );
}

async function remove(cli: Cli, id: string, options: ServerOptions): Promise<void> {
  await answerOf(tenantApi(cli, options).DELETE('/v1/spending-caps/{id}', { params: { path: { id } } }));
  if (options.json) printValue(cli.terminal, { id });
  else cli.terminal.out(`The spending cap ${id} is deleted.`);
}

async function ofTenant(cli: Cli, slug: string, options: OperatorCapOptions): Promise<void> {
  const { period, amount, remove: isRemoval } = options;
  if (isRemoval && amount !== undefined) throw new UsageError('Give --amount or --remove, not both.');
  const params = { path: { tenant: slug, period } };
  const found = await withOperatorApi(cli, options, async (api) => {
    if (isRemoval)
      await answerOf(api.DELETE('/v1/admin/tenants/{tenant}/spending-caps/{period}', { params }));
    else if (amount !== undefined)
      await answerOf(
        api.PUT('/v1/admin/tenants/{tenant}/spending-caps/{period}', { params, body: { amount } }),
      );
    return answerOf(api.GET('/v1/admin/tenants/{tenant}/spending-caps', { params }));
  });
  if (options.json) printValue(cli.terminal, found);
  else print(cli.terminal, found, `No spending caps yet: npx baton tenants caps ${slug} --amount 500`);
}

function print(
  terminal: Terminal,
  { currency, caps }: { currency: string; caps: readonly (Cap | OperatorSchemas['SpendingCap'])[] },
  none: string,
): void {
  const rows = caps.map((cap) => [
    cap.id,
    nameOf(cap),
    cap.period,
    cap.used,
    `${cap.amount} ${currency}`,
    cap.subject === '*' ? (cap.used_by ?? '') : '',
    cap.on_limit,
    cap.set_by,
  ]);
  printTable(terminal, TITLES, rows, none);
}

const nameOf = ({ of, subject }: Pick<Cap, 'of' | 'subject'>): string =>
  subject === '*' ? `each ${of}` : `${of} ${subject}`.trim();
