import { BUILTIN_AGENTS } from '@baton/agents';
import { type DeadLetter, DeadLetterStore, OPERATOR_ACTOR, TaskStore, RunStore } from '@baton/database';
import { DeadLetters, TurnIntake } from '@baton/tasks';
import type { RunJob } from '@baton/messaging';
import type { Command } from 'commander';
import { type Cli, JSON_OPTION, type JsonOption, OperatorError } from '../cli.js';
import { formatTime, oneLine, printFields, printJson, printRunError, printTable } from '../output.js';
import { type Platform, requireTenant, withDatabase, withMessaging } from '../platform.js';

const TITLES = ['run', 'tenant', 'agent', 'attempts', 'died (UTC)', 'redelivered as', 'reason'];
const NONE = 'There are no dead letters.';
/** Maximum that one list shows, and that one `--all` redelivers. */
const MAX_LETTERS = 1_000;

interface TenantOption extends JsonOption {
  tenant?: string;
}

interface RedeliverOptions extends TenantOption {
  all?: boolean;
  again?: boolean;
}

/** What every command works with. */
interface Desk extends Platform {
  letters: DeadLetterStore;
  tasks: TaskStore;
  runs: RunStore;
}

/** `baton dead-letters …`: runs that used up their attempts. */
export function addDeadLetterCommands(program: Command, cli: Cli): void {
  const letters = program.command('dead-letters').description('runs that used up their attempts');

  letters
    .command('list')
    .description('list them, latest first')
    .option('--tenant <slug>', 'only of this tenant')
    .option(...JSON_OPTION)
    .action((options: TenantOption) => listLetters(cli, options));

  letters
    .command('show')
    .description('show one with its message and its error')
    .argument('<run>', 'id of the run')
    .option(...JSON_OPTION)
    .action((run: string, options: JsonOption) => showLetter(cli, run, options));

  letters
    .command('redeliver')
    .description('send the message again, as a new task of the same agent')
    .argument('[run]', 'id of the run')
    .option('--all', 'all that were not redelivered yet; needs --tenant')
    .option('--tenant <slug>', 'tenant of --all')
    .option('--again', 'even if it was redelivered before')
    .option(...JSON_OPTION)
    .action((run: string | undefined, options: RedeliverOptions) => redeliverLetters(cli, run, options));
}

async function withDesk<T>({ source }: Cli, work: (desk: Desk) => Promise<T>): Promise<T> {
  return withDatabase(source, ({ database, ...platform }) =>
    work({
      ...platform,
      letters: new DeadLetterStore(database),
      tasks: new TaskStore(database),
      runs: new RunStore(database),
    }),
  );
}

async function lettersOf({ letters, tenants }: Desk, slug: string | undefined): Promise<DeadLetter[]> {
  if (slug === undefined) return letters.listAll(MAX_LETTERS);
  const { id } = await requireTenant(tenants, slug);
  return letters.list(id, { limit: MAX_LETTERS });
}

async function listLetters(cli: Cli, { tenant, json }: TenantOption): Promise<void> {
  const records = await withDesk(cli, async (desk) => {
    const [found, tenants] = await Promise.all([lettersOf(desk, tenant), desk.tenants.list()]);
    const slugs = new Map(tenants.map(({ id, slug }) => [id, slug]));
    return found.map((letter) => ({ ...letter, tenant: slugs.get(letter.tenantId) ?? '' }));
  });
  const rows = records.map((letter) => [
    letter.runId,
    letter.tenant,
    letter.agentId,
    String(letter.attempts),
    formatTime(letter.diedAt),
    (letter.redeliveredAt && letter.redeliveredTaskId) ?? '',
    oneLine(letter.reason, 60),
  ]);
  if (json) printJson(cli.terminal, records);
  else printTable(cli.terminal, TITLES, rows, NONE);
}

async function requireLetter({ letters }: Desk, runId: string): Promise<DeadLetter> {
  const letter = await letters.findAnywhere(runId);
  if (letter) return letter;
  throw new OperatorError(
    `There is no dead letter of run "${runId}": npx baton dead-letters list shows all of them.`,
  );
}

async function showLetter(cli: Cli, runId: string, { json }: JsonOption): Promise<void> {
  const record = await withDesk(cli, async (desk) => {
    const letter = await requireLetter(desk, runId);
    const said = await desk.letters.readMessage(letter.tenantId, runId);
    const error = await desk.runs.lastError(letter.tenantId, letter.taskId);
    return { ...letter, message: said?.message ?? null, error: error ?? null };
  });
  if (json) return void printJson(cli.terminal, record);
  const { reason, attempts, taskId, agentId, diedAt, redeliveredAt, redeliveredTaskId, message, error } =
    record;
  const texts = message?.parts.map(({ content }) => (content?.$case === 'text' ? content.value : '…'));
  const lines = [
    ['run', runId],
    ['task', taskId],
    ['agent', agentId],
    ['died', `${formatTime(diedAt)} (UTC), after ${attempts} attempts`],
    ['reason', reason],
    ['message', texts ? oneLine(texts.join(' ')) : 'no longer kept'],
    [
      'redelivered',
      redeliveredAt ? `${formatTime(redeliveredAt)} (UTC), as task ${redeliveredTaskId ?? ''}` : 'no',
    ],
  ] as const;
  printFields(cli.terminal, lines);
  if (error) printRunError(cli.terminal, error);
}

async function redeliverLetters(
  cli: Cli,
  runId: string | undefined,
  { all, tenant, again = false, json }: RedeliverOptions,
): Promise<void> {
  if ((runId === undefined) === !all || all === (tenant === undefined)) {
    throw new OperatorError('Name the run to redeliver, or all of one tenant with --all --tenant <slug>.');
  }
  await withDesk(cli, async (desk) => {
    const chosen = runId === undefined ? await lettersOf(desk, tenant) : [await requireLetter(desk, runId)];
    const due = all && !again ? chosen.filter(({ redeliveredAt }) => !redeliveredAt) : chosen;
    const made: { runId: string; taskId: string }[] = [];
    await withRedelivery(desk, async (deadLetters) => {
      for (const letter of due) {
        const taskId = await redeliverOne(deadLetters, letter, again).catch((error: unknown) => {
          // With --all, one that can't be redelivered does not stop the others.
          if (!all || !(error instanceof OperatorError)) throw error;
          cli.terminal.err(error.message);
        });
        if (taskId !== undefined) made.push({ runId: letter.runId, taskId });
      }
    });
    if (json) printJson(cli.terminal, made);
    else if (made.length === 0) cli.terminal.err('There is nothing to redeliver.');
    else for (const one of made) cli.terminal.out(`Run ${one.runId} is redelivered as task ${one.taskId}.`);
  });
}

/** The use case of the API, without the limits of tenants: they do not apply to the operator. */
async function withRedelivery(desk: Desk, work: (deadLetters: DeadLetters) => Promise<void>): Promise<void> {
  const { letters, tasks, agents, environment } = desk;
  await withMessaging(environment, async (messaging, answers) => {
    const slots = {
      quotaFor: async () => undefined,
      // If the queue is away, the sweeper enqueues the run.
      enqueue: async (run: RunJob, dispatched: boolean) => {
        if (answers && dispatched) await messaging.enqueueRuns([run]).catch(() => undefined);
      },
    };
    const directory = {
      find: async (tenantId: string, agentId: string) =>
        BUILTIN_AGENTS.find(({ id }) => id === agentId) ?? agents.find(tenantId, agentId),
    };
    await work(new DeadLetters(letters, directory, new TurnIntake(tasks, slots, environment)));
  });
}

async function redeliverOne(
  deadLetters: DeadLetters,
  { tenantId, runId }: DeadLetter,
  again: boolean,
): Promise<string> {
  const redelivered = await deadLetters.redeliver(tenantId, runId, again, undefined, OPERATOR_ACTOR);
  if (redelivered.ok) return redelivered.taskId;
  if (redelivered.reason === 'redelivered') {
    throw new OperatorError(
      `Run ${runId} was redelivered before, as task ${redelivered.taskId}: add --again to redeliver it once more.`,
    );
  }
  throw new OperatorError(
    redelivered.reason === 'agent-gone'
      ? `The agent of run ${runId} no longer exists: the run cannot be redelivered.`
      : `The task of run ${runId} and its message were deleted by retention.`,
  );
}
