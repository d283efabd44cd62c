import { Message } from '@baton/a2a';
import type { OperatorSchemas } from '@baton/contract';
import type { Command } from 'commander';
import { answerOf, listAll } from '../api.js';
import { type Cli } from '../cli.js';
import { NotFoundError } from '../not-found-error.js';
import { UsageError } from '../usage-error.js';
import { OperatorError } from '../operator-error.js';
import {
  type OperatorApi,
  type OperatorOptions,
  refusalOf,
  withOperatorApi,
  withOperatorOptions,
} from '../operator/operator-api.js';
import { printed } from '../operator/printed.js';
import { formatTime, oneLine, printFields, printValue, printRunError, printTable } from '../output.js';

const TITLES = ['run', 'tenant', 'agent', 'attempts', 'died', 'redelivered as', 'reason'];
const NONE = 'There are no dead letters.';
const PUSH_TITLES = ['task', 'config', 'tenant', 'receiver', 'waiting', 'failing since', 'error'];

type TenantDeadLetter = OperatorSchemas['TenantDeadLetter'];
type TenantDeadPush = OperatorSchemas['TenantDeadPush'];

interface DeadLetterOptions extends OperatorOptions {
  tenant?: string;
}

interface RedeliverOptions extends DeadLetterOptions {
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
    .action((options: DeadLetterOptions) => listLetters(cli, options));

  withOperatorOptions(letters.command('show'))
    .description('show one with its message and its error')
    .argument('<run>', 'id of the run')
    .action((run: string, options: OperatorOptions) => showLetter(cli, run, options));

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
    .action((options: DeadLetterOptions) => listPushes(cli, options));

  withOperatorOptions(letters.command('redeliver-pushes'))
    .description('deliver the push configs of a task again, after the last delivered event')
    .argument('<task>', 'id of the task')
    .option('--config <id>', 'only this push config')
    .action((task: string, options: OperatorOptions & { config?: string }) =>
      redeliverPushes(cli, task, options),
    );
}

const lettersOf = (api: OperatorApi, tenant: string | undefined): Promise<TenantDeadLetter[]> =>
  listAll(
    (page) => api.GET('/v1/admin/dead-letters', { params: { query: { tenant, ...page } } }),
    ({ dead_letters: letters }) => letters,
  );

async function listLetters(cli: Cli, options: DeadLetterOptions): Promise<void> {
  const { tenant, json } = options;
  const letters = await withOperatorApi(cli, options, (api) => lettersOf(api, tenant));
  if (json) printValue(cli.terminal, letters.map(printed));
  else printTable(cli.terminal, TITLES, letters.map(rowOf), NONE);
}

const rowOf = (letter: TenantDeadLetter): string[] => [
  letter.run_id,
  letter.tenant,
  letter.agent_id,
  String(letter.attempts),
  formatTime(new Date(letter.died_at)),
  (letter.redelivered_at && letter.redelivered_as) ?? '',
  oneLine(letter.reason, 60),
];

async function showLetter(cli: Cli, runId: string, options: OperatorOptions): Promise<void> {
  const params = { path: { runId } };
  const found = await withOperatorApi(cli, options, (api) =>
    answerOf(api.GET('/v1/admin/dead-letters/{runId}', { params })),
  ).catch((error: unknown) => {
    throw explained(runId, error);
  });
  const { error, ...letter } = found;
  const message = found.message && Message.fromJSON(found.message);
  if (options.json) {
    return void printValue(cli.terminal, { ...printed(letter), message, error: error && printed(error) });
  }
  const { reason, attempts, task_id: taskId, agent_id: agentId, redelivered_at: redelivered } = letter;
  const texts = message?.parts.map(({ content }) => (content?.$case === 'text' ? content.value : '…'));
  const lines = [
    ['run', runId],
    ['task', taskId],
    ['agent', agentId],
    ['died', `${formatTime(new Date(letter.died_at))}, after ${attempts} attempts`],
    ['reason', reason],
    ['message', texts ? oneLine(texts.join(' ')) : 'no longer kept'],
    [
      'redelivered',
      redelivered === null
        ? 'no'
        : `${formatTime(new Date(redelivered))}, as task ${letter.redelivered_as ?? ''}`,
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
  await withOperatorApi(cli, options, async (api) => {
    const letters = runId === undefined ? await lettersOf(api, tenant) : [];
    const due = again ? letters : letters.filter((letter) => letter.redelivered_at === null);
    for (const id of runId === undefined ? due.map((letter) => letter.run_id) : [runId]) {
      const params = { path: { runId: id }, query: { again } };
      try {
        const sent = await answerOf(api.POST('/v1/admin/dead-letters/{runId}/redeliver', { params }));
        made.push({ runId: id, taskId: sent.task_id });
      } catch (error) {
        const reason = explained(id, error);
        // With --all, a failed redelivery does not stop the others.
        if (!all || !(reason instanceof OperatorError) || !refusalOf(error)) throw reason;
        cli.terminal.err(reason.message);
      }
    }
  });
  if (json) printValue(cli.terminal, made);
  else if (made.length === 0) cli.terminal.err('There is nothing to redeliver.');
  else for (const one of made) cli.terminal.out(`Run ${one.runId} is redelivered as task ${one.taskId}.`);
}

async function listPushes(cli: Cli, options: DeadLetterOptions): Promise<void> {
  const { tenant, json } = options;
  const pushes = await withOperatorApi(cli, options, (api) =>
    listAll(
      (page) => api.GET('/v1/admin/dead-pushes', { params: { query: { tenant, ...page } } }),
      ({ dead_pushes: all }) => all,
    ),
  );
  if (json) return void printValue(cli.terminal, pushes.map(printed));
  printTable(cli.terminal, PUSH_TITLES, pushes.map(pushRow), 'No push config was given up.');
}

const pushRow = (push: TenantDeadPush): string[] => [
  push.task_id,
  push.config_id,
  push.tenant,
  push.receiver,
  String(push.waiting),
  formatTime(new Date(push.failing_since)),
  oneLine(push.error ?? '', 60),
];

async function redeliverPushes(
  cli: Cli,
  taskId: string,
  { config, ...options }: OperatorOptions & { config?: string },
): Promise<void> {
  const params = { path: { id: taskId }, query: { config } };
  const { configs } = await withOperatorApi(cli, options, (api) =>
    answerOf(api.POST('/v1/admin/dead-pushes/{id}/redeliver', { params })),
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
