import type { DeadLetter, DeadPush } from '@baton/database';
import type { OfTenant } from '@baton/tasks';
import type { Command } from 'commander';
import { type Cli, type JsonOption } from '../cli.js';
import { NotFoundError } from '../not-found-error.js';
import { UsageError } from '../usage-error.js';
import { OperatorError } from '../operator-error.js';
import { type OperatorOptions, withOperatorOptions } from '../operator/admin-target.js';
import { refusalOf, withOperations } from '../operator/operations.js';
import type { PlatformOperations } from '../operator/platform-operations.js';
import { formatTime, oneLine, printFields, printValue, printRunError, printTable } from '../output.js';
import { unknownTenant } from '../platform.js';

const TITLES = ['run', 'tenant', 'agent', 'attempts', 'died', 'redelivered as', 'reason'];
const NONE = 'There are no dead letters.';
const PUSH_TITLES = ['task', 'config', 'tenant', 'receiver', 'waiting', 'failing since', 'error'];

type Options = JsonOption & OperatorOptions;

interface TenantOption extends Options {
  tenant?: string;
}

interface RedeliverOptions extends TenantOption {
  all?: boolean;
  again?: boolean;
}

/** `baton dead-letters …`: runs that used up their attempts, and push configs that were given up. */
export function addDeadLetterCommands(program: Command, cli: Cli): void {
  const letters = program
    .command('dead-letters')
    .description('runs that used up their attempts, and push configs that were given up');

  withOperatorOptions(letters.command('list'))
    .description('list them, latest first')
    .option('--tenant <slug>', 'only of this tenant')
    .action((options: TenantOption) => listLetters(cli, options));

  withOperatorOptions(letters.command('show'))
    .description('show one with its message and its error')
    .argument('<run>', 'id of the run')
    .action((run: string, options: Options) => showLetter(cli, run, options));

  withOperatorOptions(letters.command('redeliver'))
    .description('send the message again, as a new task of the same agent')
    .argument('[run]', 'id of the run')
    .option('--all', 'all that were not redelivered yet; needs --tenant')
    .option('--tenant <slug>', 'tenant of --all')
    .option('--again', 'even if it was redelivered before')
    .action((run: string | undefined, options: RedeliverOptions) => redeliverLetters(cli, run, options));

  withOperatorOptions(letters.command('pushes'))
    .description('list push configs that were given up, latest first')
    .option('--tenant <slug>', 'only of this tenant')
    .action((options: TenantOption) => listPushes(cli, options));

  withOperatorOptions(letters.command('redeliver-pushes'))
    .description('deliver the push configs of a task again, after the last delivered event')
    .argument('<task>', 'id of the task')
    .option('--config <id>', 'only this push config')
    .action((task: string, options: Options & { config?: string }) => redeliverPushes(cli, task, options));
}

/** @throws OperatorError if there is no such tenant */
const lettersOf = (
  operations: PlatformOperations,
  tenant: string | undefined,
): Promise<OfTenant<DeadLetter>[]> =>
  operations.listLetters(tenant).catch((error: unknown) => {
    if (tenant !== undefined && refusalOf(error)?.status === 404) unknownTenant(tenant);
    throw error;
  });

async function listLetters(cli: Cli, options: TenantOption): Promise<void> {
  const { tenant, json } = options;
  const records = await withOperations(cli, options, (operations) => lettersOf(operations, tenant));
  const rows = records.map((letter) => [
    letter.runId,
    letter.tenant,
    letter.agentId,
    String(letter.attempts),
    formatTime(letter.diedAt),
    (letter.redeliveredAt && letter.redeliveredTaskId) ?? '',
    oneLine(letter.reason, 60),
  ]);
  if (json) printValue(cli.terminal, records);
  else printTable(cli.terminal, TITLES, rows, NONE);
}

async function showLetter(cli: Cli, runId: string, options: Options): Promise<void> {
  const record = await withOperations(cli, options, (operations) => operations.showLetter(runId)).catch(
    (error: unknown) => {
      throw explained(runId, error);
    },
  );
  if (options.json) return void printValue(cli.terminal, record);
  const { reason, attempts, taskId, agentId, diedAt, redeliveredAt, redeliveredTaskId, message, error } =
    record;
  const texts = message?.parts.map(({ content }) => (content?.$case === 'text' ? content.value : '…'));
  const lines = [
    ['run', runId],
    ['task', taskId],
    ['agent', agentId],
    ['died', `${formatTime(diedAt)}, after ${attempts} attempts`],
    ['reason', reason],
    ['message', texts ? oneLine(texts.join(' ')) : 'no longer kept'],
    [
      'redelivered',
      redeliveredAt ? `${formatTime(redeliveredAt)}, as task ${redeliveredTaskId ?? ''}` : 'no',
    ],
  ] as const;
  printFields(cli.terminal, lines);
  if (error) printRunError(cli.terminal, error);
}

async function redeliverLetters(
  cli: Cli,
  runId: string | undefined,
  options: RedeliverOptions,
): Promise<void> {
  const { all, tenant, again = false, json } = options;
  if ((runId === undefined) === !all || all === (tenant === undefined)) {
    throw new UsageError('Name the run to redeliver, or all of one tenant with --all --tenant <slug>.');
  }
  const made: { runId: string; taskId: string }[] = [];
  await withOperations(cli, options, async (operations) => {
    const letters = runId === undefined ? await lettersOf(operations, tenant) : [];
    const due = again ? letters : letters.filter(({ redeliveredAt }) => !redeliveredAt);
    for (const id of runId === undefined ? due.map((letter) => letter.runId) : [runId]) {
      try {
        made.push({ runId: id, taskId: (await operations.redeliver(id, again)).taskId });
      } catch (error) {
        const reason = explained(id, error);
        // With --all, one that can't be redelivered does not stop the others.
        if (!all || !(reason instanceof OperatorError) || !refusalOf(error)) throw reason;
        cli.terminal.err(reason.message);
      }
    }
  });
  if (json) printValue(cli.terminal, made);
  else if (made.length === 0) cli.terminal.err('There is nothing to redeliver.');
  else for (const one of made) cli.terminal.out(`Run ${one.runId} is redelivered as task ${one.taskId}.`);
}

async function listPushes(cli: Cli, options: TenantOption): Promise<void> {
  const { tenant, json } = options;
  const records = await withOperations(cli, options, (operations) =>
    operations.listPushes(tenant).catch((error: unknown) => {
      if (tenant !== undefined && refusalOf(error)?.status === 404) unknownTenant(tenant);
      throw error;
    }),
  );
  if (json) return void printValue(cli.terminal, records);
  printTable(cli.terminal, PUSH_TITLES, records.map(pushRow), 'No push config was given up.');
}

const pushRow = (push: OfTenant<DeadPush>): string[] => [
  push.taskId,
  push.configId,
  push.tenant,
  push.receiver,
  String(push.waiting),
  formatTime(push.failingSince),
  oneLine(push.error ?? '', 60),
];

async function redeliverPushes(
  cli: Cli,
  taskId: string,
  { config, ...options }: Options & { config?: string },
): Promise<void> {
  const configs = await withOperations(cli, options, (operations) =>
    operations.redeliverPushes(taskId, config),
  ).catch((error: unknown) => {
    if (refusalOf(error)?.status !== 404) throw error;
    throw new NotFoundError(
      `No push config of task "${taskId}" was given up: npx baton dead-letters pushes shows all of them.`,
    );
  });
  if (options.json) printValue(cli.terminal, { taskId, configs });
  else if (configs.length === 0) cli.terminal.err('There is nothing to deliver again.');
  else for (const id of configs) cli.terminal.out(`Push config ${id} is delivered again.`);
}

/** Says what to do, in the words of the command. */
function explained(runId: string, error: unknown): unknown {
  const { status, reason = '' } = refusalOf(error) ?? {};
  if (status === 404) {
    return new NotFoundError(
      `There is no dead letter of run "${runId}": npx baton dead-letters list shows all of them.`,
    );
  }
  const [, taskId] = /redelivered before, as task ([^;]+);/.exec(reason) ?? [];
  if (taskId !== undefined) {
    return new OperatorError(
      `Run ${runId} was redelivered before, as task ${taskId}: add --again to redeliver it once more.`,
    );
  }
  if (reason.includes('its agent no longer exists')) {
    return new OperatorError(`The agent of run ${runId} no longer exists: the run cannot be redelivered.`);
  }
  return reason.includes('deleted by retention')
    ? new OperatorError(`The task of run ${runId} and its message were deleted by retention.`)
    : error;
}
