import { Command, CommanderError } from 'commander';
import type { Cli } from './cli.js';
import { OperatorError } from './operator-error.js';

/** What each command adds to the program. Loaded when it is asked for: a command starts faster without the others. */
const COMMANDS: Readonly<
  Record<string, { summary: string; add: (program: Command, cli: Cli) => Promise<void> }>
> = {
  tenants: {
    summary: 'who is served: create, list, set, limits',
    add: async (...args) => (await import('./commands/tenants.js')).addTenantCommands(...args),
  },
  tokens: {
    summary: "a tenant's bearer tokens: create, list, revoke",
    add: async (...args) => (await import('./commands/tokens.js')).addTokenCommands(...args),
  },
  agents: {
    summary: "a tenant's agents: apply, list, show, enable, disable, versions, restore, remove",
    add: async (...args) => (await import('./commands/agents.js')).addAgentCommands(...args),
  },
  hosts: {
    summary: 'host names that are bound to an agent: bind, list, unbind',
    add: async (...args) => (await import('./commands/hosts.js')).addHostCommands(...args),
  },
  secrets: {
    summary: "a tenant's encrypted secrets: set, list, remove, rotate",
    add: async (...args) => (await import('./commands/secrets.js')).addSecretCommands(...args),
  },
  schedules: {
    summary: 'messages sent by the clock: list, create, show, pause, resume, run, remove',
    add: async (...args) => (await import('./commands/schedules.js')).addScheduleCommands(...args),
  },
  tasks: {
    summary: "a tenant's tasks: show",
    add: async (...args) => (await import('./commands/tasks.js')).addTaskCommands(...args),
  },
  'dead-letters': {
    summary: 'runs that used up their attempts: list, show, redeliver',
    add: async (...args) => (await import('./commands/dead-letters.js')).addDeadLetterCommands(...args),
  },
  backup: {
    summary: 'write everything in the database to a file',
    add: async (...args) => (await import('./commands/backup.js')).addBackupCommand(...args),
  },
  restore: {
    summary: 'put a backup into an empty database',
    add: async (...args) => (await import('./commands/restore.js')).addRestoreCommand(...args),
  },
  config: {
    summary: 'the settings of this environment: check',
    add: async (...args) => (await import('./commands/config.js')).addConfigCommands(...args),
  },
  send: {
    summary: 'send a message to an agent and print its answer',
    add: async (...args) => (await import('./commands/send.js')).addSendCommand(...args),
  },
  watch: {
    summary: 'print the events of a task until it has ended',
    add: async (...args) => (await import('./commands/watch.js')).addWatchCommand(...args),
  },
};

/**
 * Run one command. Never rejects: what goes wrong is one sentence on the error stream.
 *
 * @param args what follows the program's name
 * @returns the exit code: 0, or 1 if the command failed, unless it says otherwise
 */
export async function run(args: readonly string[], cli: Cli): Promise<number> {
  try {
    const program = await buildProgram(args, cli);
    await program.parseAsync(args, { from: 'user' });
    return 0;
  } catch (error) {
    // Commander has said what is wrong itself; to ask for help is no error.
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 1;
    const { explain } = await import('./explain.js');
    const sentence = explain(error);
    if (sentence !== '') cli.terminal.err(sentence);
    return (error instanceof OperatorError ? error.options.exitCode : undefined) ?? 1;
  }
}

async function buildProgram(args: readonly string[], cli: Cli): Promise<Command> {
  const program = createProgram(cli);
  for (const [name, { summary, add }] of Object.entries(COMMANDS)) {
    if (args.includes(name)) await add(program, cli);
    else program.command(name).summary(summary);
  }
  return program;
}

function createProgram({ terminal }: Cli): Command {
  return new Command('baton')
    .description("The operators' command line of Baton")
    .exitOverride()
    .showHelpAfterError('(--help shows how it is called)')
    .configureOutput({
      writeOut: (text) => terminal.out(text.trimEnd()),
      writeErr: (text) => terminal.err(text.trimEnd()),
      outputError: (text, write) =>
        write(text.replace(/^error: (.)/, (_, first: string) => first.toUpperCase()).replace(/\n$/, '.')),
    });
}
