import { SPAN_KINDS } from '@baton/contract';
import { type Command, Option } from 'commander';
import { MAX_LISTED, type ServerOptions } from '../api.js';
import { type Cli, JSON_OPTION } from '../cli.js';
import { TOKEN_OPTION, URL_OPTION } from '../server.js';
import { cancelTasks, continueTask, resumeTasks, sendTaskAgain } from '../tasks/act-on-tasks.js';
import { type ForkOptions, forkTask } from '../tasks/fork-task.js';
import { type EffectOptions, listEffects } from '../tasks/list-effects.js';
import { type ListOptions, listTasks, listWaitingTasks } from '../tasks/list-tasks.js';
import { showTask } from '../tasks/show-task.js';
import { type LogsOptions, printTaskConsole, printTaskLog, watchTask } from '../tasks/task-log.js';
import { type TraceOptions, traceTask } from '../tasks/trace-task.js';

/** `baton tasks …`: the tasks of a tenant. */
export function addTaskCommands(program: Command, cli: Cli): void {
  const tasks = program.command('tasks').description('tasks of a tenant; needs a token of the tenant');
  const add = (name: string, description: string): Command =>
    tasks
      .command(name)
      .description(description)
      .option(...URL_OPTION)
      .option(...TOKEN_OPTION)
      .option(...JSON_OPTION);
  const ofTask = (name: string, description: string): Command =>
    add(name, description).argument('<task>', 'id of the task');

  add('list', 'list the tasks that the token sees, the newest status first')
    .option('--state <state>', 'only in this state, such as failed or input-required')
    .option('--agent <agent>', 'only of this agent: its slug or id')
    .option('--context <id>', 'only of this context; needs --agent')
    .option('--since <when>', 'only with a status since then: 2h, 7d, or a time')
    .option('--until <when>', 'only with a status before then: 1h, 1d, or a time')
    .option(
      '--search <text>',
      'only with this text in the first message, status, error or answer, or in the id of the context or task',
    )
    .option('--parked', 'only tasks that wait for other code of their agent')
    .option('--limit <number>', `maximum number of tasks, up to ${MAX_LISTED}`, '50')
    .action((options: ListOptions) => listTasks(cli, options));
  add(
    'waiting',
    'list the tasks that wait for an answer and that the token may answer, the oldest first; needs the scope agents:call',
  )
    .option('--limit <number>', `maximum number of tasks, up to ${MAX_LISTED}`, '50')
    .action((options: ServerOptions & { limit: string }) => listWaitingTasks(cli, options));
  ofTask(
    'show',
    'show a task: its state, answer, relations, calls of models, steps, newest events, and the last error of its agent',
  )
    .option('--tenant <slug>', 'as the operator: tenant of the task; shows no messages')
    .action(async (task: string, { tenant, ...options }: ServerOptions & { tenant?: string }) => {
      if (tenant === undefined) return showTask(cli, task, options);
      const { showTaskAsOperator } = await import('../tasks/show-as-operator.js');
      return showTaskAsOperator(cli, task, { tenant, ...options });
    });
  ofTask('find', 'as the operator: find the tenant of a task, and show the task without its messages').action(
    async (task: string, options: ServerOptions) => {
      const { findTaskAsOperator } = await import('../tasks/show-as-operator.js');
      return findTaskAsOperator(cli, task, options);
    },
  );
  ofTask('watch', 'print the events of a task with their times until it ends')
    .option('--after <sequence>', 'start after the event with this sequence', '0')
    .action((task: string, options: ServerOptions & { after: string }) => watchTask(cli, task, options));
  ofTask('logs', 'print the events of a task so far, with their times, and the last error of its agent')
    .option('--after <sequence>', 'start after the event with this sequence, or after this line', '0')
    .option('-f, --follow', 'continue until the task ends')
    .option('--console', "print what the agent's code has written to its console instead")
    .action((task: string, options: LogsOptions) =>
      options.console ? printTaskConsole(cli, task, options) : printTaskLog(cli, task, options),
    );
  ofTask(
    'trace',
    'show what happened in a task, and how long each part took: turns, waits, attempts, calls of models and tools, questions, children',
  )
    .option(
      '--entry <entry>',
      'show what this call has said, with the scope agents:write; and what its model was sent, with records:read',
    )
    .option('--grep <text>', 'only spans with this text in their kind, name or error, and those around them')
    .addOption(
      new Option('--kind <kind>', 'only spans of this kind, and those around them').choices(SPAN_KINDS),
    )
    .option('--errors', 'only spans that have failed, and those around them')
    .option('--slow <seconds>', 'only spans that take at least this long, and those around them')
    .action((task: string, options: TraceOptions) => traceTask(cli, task, options));
  add(
    'effects',
    'list the effects of tasks outside of Baton, and whether the end of each is known; needs the scope agents:write',
  )
    .argument('[task]', 'id of a task (default: all tasks, those with the newest status first)')
    .addOption(
      new Option('--outcome <outcome>', 'only with this outcome').choices([
        'intended',
        'sent',
        'confirmed',
        'failed',
        'unknown',
      ]),
    )
    .option('--agent <agent>', 'only of tasks of this agent: its slug or id')
    .option('--since <when>', 'only of tasks with a status since then: 2h, 7d, or a time')
    .option('--limit <number>', `maximum number of effects, up to ${MAX_LISTED}`, '50')
    .action((task: string | undefined, options: EffectOptions) => listEffects(cli, task, options));
  add('cancel', 'cancel tasks')
    .argument('<task...>', 'ids of the tasks')
    .action((ids: string[], options: ServerOptions) => cancelTasks(cli, ids, options));
  add('resume', 'resume parked tasks with the present code of their agents')
    .argument('<task...>', 'ids of the tasks')
    .action((ids: string[], options: ServerOptions) => resumeTasks(cli, ids, options));
  ofTask('send-again', 'send the first message of a task again, as a new task in the same context').action(
    (task: string, options: ServerOptions) => sendTaskAgain(cli, task, options),
  );
  ofTask(
    'continue',
    'continue a failed task at the point of failure, as a new task; finished steps do not run again',
  ).action((task: string, options: ServerOptions) => continueTask(cli, task, options));
  ofTask(
    'fork',
    'make a new task from any point of a task, with other input or another agent; first lists what the fork may repeat',
  )
    .option(
      '--at <entry>',
      'the last entry to take over: the entry of a line of `tasks trace` (default: all)',
    )
    .option('--text <text>', 'another message for the turn')
    .option('--agent <agent>', 'another agent: its slug or id')
    .option('--yes', 'make the fork, also if it may do something again')
    .action((task: string, options: ForkOptions) => forkTask(cli, task, options));
}
