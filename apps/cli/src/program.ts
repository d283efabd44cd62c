import { Command, CommanderError, Option } from 'commander';
import { type Cli } from './cli.js';
import { OfTaskError } from './of-task-error.js';
import { EXIT } from './exit.js';
import type { Terminal } from './output.js';

/** The commands. Each is loaded only when it is used, so that a command starts fast. */
const COMMANDS: Readonly<
  Record<string, { summary: string; add: (program: Command, cli: Cli) => Promise<void> }>
> = {
  start: {
    summary: 'run Baton on this machine with its own services, as `npm start` does in a clone',
    add: async (program) => (await import('./commands/start.js')).addStartCommand(program),
  },
  tenants: {
    summary:
      'tenants: create, list, set, limits, caps, egress, usage, report, suspend, resume, delete, export, import',
    add: async (...args) => (await import('./commands/tenants.js')).addTenantCommands(...args),
  },
  tokens: {
    summary: 'bearer tokens of a tenant: create, list, show, rotate, revoke',
    add: async (...args) => (await import('./commands/tokens.js')).addTokenCommands(...args),
  },
  issuers: {
    summary: 'OpenID providers that a tenant trusts: add, list, remove',
    add: async (...args) => (await import('./commands/issuers.js')).addIssuerCommands(...args),
  },
  'operator-tokens': {
    summary: 'tokens for the API of operators: create, list, revoke',
    add: async (...args) => (await import('./commands/operator-tokens.js')).addOperatorTokenCommands(...args),
  },
  agents: {
    summary:
      'agents of a tenant: apply, check, list, show, enable, disable, versions, open, next, promote, withdraw, restore, erase, remove, create, schema',
    add: async (...args) => (await import('./commands/agents.js')).addAgentCommands(...args),
  },
  hosts: {
    summary: 'host names bound to an agent: bind, list, unbind',
    add: async (...args) => (await import('./commands/hosts.js')).addHostCommands(...args),
  },
  secrets: {
    summary: 'encrypted secrets of a tenant: set, list, origins, remove, rotate',
    add: async (...args) => (await import('./commands/secrets.js')).addSecretCommands(...args),
  },
  connections: {
    summary: 'sign-ins at servers that agents call: sign-in, list, sign-out',
    add: async (...args) => (await import('./commands/connections.js')).addConnectionCommands(...args),
  },
  schedules: {
    summary: 'messages at fixed times: list, create, show, pause, resume, run, remove',
    add: async (...args) => (await import('./commands/schedules.js')).addScheduleCommands(...args),
  },
  webhooks: {
    summary:
      'receivers of state changes: list, create, show, set, enable, disable, rotate, test, deliveries, redeliver, remove',
    add: async (...args) => (await import('./commands/webhooks.js')).addWebhookCommands(...args),
  },
  tasks: {
    summary:
      'tasks of a tenant: list, waiting, show, watch, logs, trace, effects, cancel, resume, send-again, continue, fork, find',
    add: async (...args) => (await import('./commands/tasks.js')).addTaskCommands(...args),
  },
  bulk: {
    summary: 'operations on many tasks: begin, list, show, cancel',
    add: async (...args) => (await import('./commands/bulk.js')).addBulkCommands(...args),
  },
  approvals: {
    summary: 'tool calls that wait for a person: list, approve, reject',
    add: async (...args) => (await import('./commands/approvals.js')).addApprovalCommands(...args),
  },
  usage: {
    summary: 'tasks, time and tokens of models by day, agent or owner',
    add: async (...args) => (await import('./commands/usage.js')).addUsageCommand(...args),
  },
  caps: {
    summary: 'spending caps of a tenant, its agents, callers and tasks: list, set, delete',
    add: async (...args) => (await import('./commands/caps.js')).addCapCommands(...args),
  },
  status: {
    summary: 'show whether the server is ready, and what runs',
    add: async (...args) => (await import('./commands/status.js')).addStatusCommand(...args),
  },
  'dead-letters': {
    summary:
      'runs without attempts left, and push configs that were given up: list, show, redeliver, pushes, redeliver-pushes',
    add: async (...args) => (await import('./commands/dead-letters.js')).addDeadLetterCommands(...args),
  },
  workers: {
    summary: 'list the workers and their load',
    add: async (...args) => (await import('./commands/workers.js')).addWorkersCommand(...args),
  },
  queue: {
    summary: 'show the number of runs in each class, and how long they wait',
    add: async (...args) => (await import('./commands/workers.js')).addQueueCommand(...args),
  },
  audit: {
    summary: 'show who changed what, in one tenant or in all',
    add: async (...args) => (await import('./commands/audit.js')).addAuditCommand(...args),
  },
  backup: {
    summary: 'write the whole database to a file',
    add: async (...args) => (await import('./commands/backup.js')).addBackupCommand(...args),
  },
  restore: {
    summary: 'restore a backup into an empty database',
    add: async (...args) => (await import('./commands/backup.js')).addRestoreCommand(...args),
  },
  'master-key': {
    summary: 'the keys of an installation: create, vault',
    add: async (...args) => (await import('./commands/master-key.js')).addMasterKeyCommands(...args),
  },
  config: {
    summary: 'the settings of this environment: check',
    add: async (...args) => (await import('./commands/config.js')).addConfigCommands(...args),
  },
  doctor: {
    summary: 'find faults of this installation, and their remedies',
    add: async (...args) => (await import('./commands/doctor.js')).addDoctorCommand(...args),
  },
  send: {
    summary: 'send a message to an agent and print its answer',
    add: async (...args) => (await import('./commands/call.js')).addSendCommand(...args),
  },
  chat: {
    summary: 'talk with an agent; each line is a message',
    add: async (...args) => (await import('./commands/chat.js')).addChatCommand(...args),
  },
  watch: {
    summary: 'print the events of a task until it ends',
    add: async (...args) => (await import('./commands/call.js')).addWatchCommand(...args),
  },
};

/**
 * Run one command. Never rejects: an error is one sentence on the error stream.
 *
 * @param args the arguments after the program's name
 * @returns the exit code: one of `EXIT`
 */
export async function run(args: readonly string[], cli: Cli): Promise<number> {
  // The terminal of this command: `--output` sets its format.
  const terminal = { ...cli.terminal };
  let taskId: string | undefined;
  try {
    const program = await buildProgram(args, { ...cli, terminal });
    program.hook('preAction', async (_, command) => {
      taskId = taskIdIn(command);
      await setOutput(terminal, command);
    });
    await program.parseAsync(args, { from: 'user' });
    return EXIT.done;
  } catch (error) {
    // Commander has printed the error itself. Asking for help is not an error.
    if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.done : EXIT.usage;
    const { explain } = await import('./explain.js');
    const { sentence, exitCode } = explain(taskId === undefined ? error : new OfTaskError(taskId, error));
    if (sentence !== '') cli.terminal.err(sentence);
    return exitCode;
  }
}

/** @param args only the commands that are named in it have their options */
export async function buildProgram(args: readonly string[], cli: Cli): Promise<Command> {
  const program = createProgram(cli);
  // The word to complete may be any command.
  const isCompletion = args.includes('complete');
  for (const [name, { summary, add }] of Object.entries(COMMANDS)) {
    if (isCompletion || args.includes(name)) await add(program, cli);
    else program.command(name).summary(summary);
  }
  if (args[0] === '--version') program.version((await import('./release.js')).releaseOf(), ...VERSION);
  else program.option(...VERSION);
  addOutputOption(program);
  if (isCompletion) await addCompletion(program);
  else program.command('complete').summary('print the script that completes commands in bash, zsh or fish');
  return program;
}

/** `baton complete <shell>`, and the command that its script asks for suggestions. */
async function addCompletion(program: Command): Promise<void> {
  const { default: tab } = await import('@bomb.sh/tab/commander');
  tab(program);
}

const VERSION = ['--version', 'print the version of Baton'] as const;

const TASK_ARGUMENTS = new Set(['task', 'task-id']);

/** The task that a command is about, if its arguments name one. */
function taskIdIn({ registeredArguments, args }: Command): string | undefined {
  const at = registeredArguments.findIndex((argument) => TASK_ARGUMENTS.has(argument.name()));
  return at === -1 ? undefined : args[at];
}

const FORMATS = ['table', 'json', 'yaml'];

/** `--output` for every command that has `--json`. */
function addOutputOption(command: Command): void {
  for (const child of command.commands) addOutputOption(child);
  if (!command.options.some(({ long }) => long === '--json')) return;
  command.addOption(
    new Option('-o, --output <format>', 'how to print results (default: table)')
      .choices(FORMATS)
      .conflicts('json'),
  );
}

/** Commands check only `json`. The terminal writes YAML in its place. */
async function setOutput(terminal: Terminal, command: Command): Promise<void> {
  const { output } = command.opts<{ output?: string }>();
  if (output === undefined || output === 'table') return;
  command.setOptionValue('json', true);
  if (output === 'json') return;
  const { stringify } = await import('yaml');
  // A value without a form in JSON, such as a time, is written as JSON writes it.
  terminal.encode = (value) => stringify(JSON.parse(JSON.stringify(value)), { lineWidth: 0 }).trimEnd();
}

function createProgram({ terminal }: Cli): Command {
  return new Command('baton')
    .description('The command line of Baton, for operators and tenants')
    .exitOverride()
    .showHelpAfterError('(--help shows the usage)')
    .configureOutput({
      writeOut: (text) => terminal.out(text.trimEnd()),
      writeErr: (text) => terminal.err(text.trimEnd()),
      outputError: (text, write) =>
        write(text.replace(/^error: (.)/, (_, first: string) => first.toUpperCase()).replace(/\.?\n$/, '.')),
    });
}
