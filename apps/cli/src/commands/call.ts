import { endsTurn, isTerminal, type Message, stateName, TaskState } from '@baton/a2a';
import type { Command } from 'commander';
import { AgentClient } from '../call/agent-client.js';
import { isTask, printEvent, replyJson, replyText, statusText } from '../call/describe.js';
import { follow } from '../call/follow.js';
import { messageOf, type MessageOptions } from '../call/message.js';
import { assertDone, LOST, parseSequence, printEvents, type TurnResult } from '../call/print-events.js';
import { type Cli, JSON_OPTION, type JsonOption } from '../cli.js';
import { printValue } from '../output.js';
import { TOKEN_OPTION, URL_OPTION } from '../server.js';
import { findTarget } from '../api.js';

interface SendOptions extends JsonOption, MessageOptions {
  url?: string;
  token?: string;
  stream?: boolean;
}

/** `baton send …`: one message to an agent, as any caller would send it. */
export function addSendCommand(program: Command, cli: Cli): void {
  program
    .command('send')
    .description('send a message to an agent and print its answer')
    .argument('<agent>', 'slug or id of the agent')
    .argument('<text>', 'the message')
    .option(...URL_OPTION)
    .option(...TOKEN_OPTION)
    .option('--stream', 'print each event as it arrives')
    .option('--task <id>', 'continue this task')
    .option('--context <id>', 'continue this conversation')
    .option('--file <paths...>', 'attach these files')
    .option('--data <json>', 'attach this JSON object')
    .option('--metadata <json>', 'metadata of the message')
    .option(...JSON_OPTION)
    .action((agent: string, text: string, options: SendOptions) => send(cli, agent, text, options));
}

async function send(cli: Cli, agent: string, text: string, options: SendOptions): Promise<void> {
  const target = findTarget(cli.source, options);
  const message = messageOf(text, options);
  const client = await AgentClient.connect(target, agent);
  const end = await (options.stream ? streamReply : printReply)(cli, client, message, options);
  if (!end) return;
  assertDone(end);
  if (!options.json) note(cli, agent, end);
}

/** Wait for the whole answer. @returns undefined when it was a bare message */
async function printReply({ terminal }: Cli, client: AgentClient, message: Message, { json }: SendOptions) {
  const reply = await client.send(message);
  if (json) printValue(terminal, replyJson(reply));
  else terminal.out(replyText(reply));
  if (!isTask(reply)) return undefined;
  const state = reply.status?.state ?? TaskState.TASK_STATE_UNSPECIFIED;
  return { taskId: reply.id, state, text: statusText(reply.status) };
}

async function streamReply({ terminal }: Cli, client: AgentClient, message: Message, { json }: SendOptions) {
  const onLost = () => terminal.err(LOST);
  return printEvents(
    follow(client.stream(message), { client, isOver: endsTurn, onLost }),
    (event) => printEvent(terminal, event, json),
    message.taskId,
  );
}

function note({ terminal }: Cli, agent: string, { taskId, state }: TurnResult): void {
  terminal.err(`Task ${taskId}: ${stateName(state)}`);
  if (state === TaskState.TASK_STATE_INPUT_REQUIRED) {
    terminal.err(`Answer with: npx baton send ${agent} "…" --task ${taskId}`);
  }
}

interface WatchOptions extends JsonOption {
  url?: string;
  token?: string;
  after: string;
}

/** `baton watch …`: the events of a task, through every lost connection, until it has ended. */
export function addWatchCommand(program: Command, cli: Cli): void {
  program
    .command('watch')
    .description('print the events of a task, one per line, until it ends')
    .argument('<agent>', 'slug or id of the agent')
    .argument('<task-id>', 'id of the task')
    .option(...URL_OPTION)
    .option(...TOKEN_OPTION)
    .option('--after <sequence>', 'start after the event with this sequence', '0')
    .option(...JSON_OPTION)
    .action((agent: string, taskId: string, options: WatchOptions) => watch(cli, agent, taskId, options));
}

async function watch({ source, terminal }: Cli, agent: string, taskId: string, options: WatchOptions) {
  const target = findTarget(source, options);
  const after = parseSequence(options.after);
  const client = await AgentClient.connect(target, agent);
  const following = { client, isOver: isTerminal, onLost: () => terminal.err(LOST) };
  const events = follow(client.subscribe(taskId, after), following, { taskId, after });
  const end = await printEvents(events, (event) => printEvent(terminal, event, options.json), taskId);
  if (end) assertDone(end);
}
