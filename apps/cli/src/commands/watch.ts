import { isTerminal } from '@baton/a2a';
import type { Command } from 'commander';
import { AgentClient } from '../a2a/agent-client.js';
import { eventJson, eventLine } from '../a2a/describe.js';
import { follow } from '../a2a/follow.js';
import { findTarget } from '../a2a/target.js';
import { TOKEN_OPTION, URL_OPTION } from '../api-client.js';
import { type Cli, JSON_OPTION, type JsonOption } from '../cli.js';
import { OperatorError } from '../operator-error.js';

interface WatchOptions extends JsonOption {
  url?: string;
  token?: string;
  after: string;
}

/** `baton watch …`: the events of a task, through every lost connection, until it has ended. */
export function addWatchCommand(program: Command, cli: Cli): void {
  program
    .command('watch')
    .description('print the events of a task, one a line, until it has ended')
    .argument('<agent>', 'slug or id of the agent')
    .argument('<task-id>', 'the task')
    .option(...URL_OPTION)
    .option(...TOKEN_OPTION)
    .option('--after <sequence>', 'begin after this event', '0')
    .option(...JSON_OPTION)
    .action((agent: string, taskId: string, options: WatchOptions) => watch(cli, agent, taskId, options));
}

async function watch({ source, terminal }: Cli, agent: string, taskId: string, options: WatchOptions) {
  const target = findTarget(source, options);
  const after = parseSequence(options.after);
  const client = await AgentClient.connect(target, agent);
  const onLost = () => terminal.err('The connection was lost; going on after the last event.');
  const following = { client, isOver: isTerminal, onLost };
  for await (const event of follow(client.subscribe(taskId, after), following, { taskId, after })) {
    terminal.out(options.json ? eventJson(event) : eventLine(event));
  }
}

function parseSequence(text: string): number {
  if (/^\d{1,9}$/.test(text)) return Number(text);
  throw new OperatorError(`--after: "${text}" is not the number of an event: give 0, 1, 2 …`);
}
