import { endsTurn, isTerminal, type Message, Role, stateName, TaskState } from '@baton/a2a';
import type { Command } from 'commander';
import { randomUUID } from 'node:crypto';
import { AgentClient, stateIn } from '../call/agent-client.js';
import { eventJson, eventLine, isTask, replyJson, replyText, statusText, textOf } from '../call/describe.js';
import { follow } from '../call/follow.js';
import { type Cli, JSON_OPTION, type JsonOption, OperatorError } from '../cli.js';
import { oneLine, printJson } from '../output.js';
import { findTarget, TOKEN_OPTION, URL_OPTION } from '../server.js';

interface SendOptions extends JsonOption {
  url?: string;
  token?: string;
  stream?: boolean;
  task?: string;
  metadata?: string;
}

/** How a turn ended: what decides the exit code and the note after the answer. */
interface TurnEnd {
  taskId: string;
  state: TaskState;
  text: string;
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
    .option('--metadata <json>', 'metadata of the message')
    .option(...JSON_OPTION)
    .action((agent: string, text: string, options: SendOptions) => send(cli, agent, text, options));
}

async function send(cli: Cli, agent: string, text: string, options: SendOptions): Promise<void> {
  const target = findTarget(cli.source, options);
  const message = buildMessage(text, options);
  const client = await AgentClient.connect(target, agent);
  const end = await (options.stream ? streamReply : printReply)(cli, client, message, options);
  if (!end) return;
  assertDone(end);
  if (!options.json) note(cli, agent, end);
}

/** Wait for the whole answer. @returns undefined when it was a bare message */
async function printReply({ terminal }: Cli, client: AgentClient, message: Message, { json }: SendOptions) {
  const reply = await client.send(message);
  if (json) printJson(terminal, replyJson(reply));
  else terminal.out(replyText(reply));
  if (!isTask(reply)) return undefined;
  const state = reply.status?.state ?? TaskState.TASK_STATE_UNSPECIFIED;
  return { taskId: reply.id, state, text: statusText(reply.status) };
}

async function streamReply({ terminal }: Cli, client: AgentClient, message: Message, { json }: SendOptions) {
  let end: TurnEnd | undefined;
  const onLost = () => terminal.err('The connection was lost. Continuing after the last event.');
  for await (const event of follow(client.stream(message), { client, isOver: endsTurn, onLost })) {
    terminal.out(json ? eventJson(event) : eventLine(event));
    const { payload } = event;
    if (payload.$case === 'task' || payload.$case === 'statusUpdate') {
      const taskId = payload.$case === 'task' ? payload.value.id : payload.value.taskId;
      const parts = payload.value.status?.message?.parts ?? [];
      end = { taskId, state: stateIn(payload) ?? TaskState.TASK_STATE_UNSPECIFIED, text: textOf(parts) };
    }
  }
  return end;
}

/** Throws OperatorError when the task did not do what it was asked. */
function assertDone({ taskId, state, text }: TurnEnd): void {
  if (state !== TaskState.TASK_STATE_FAILED && state !== TaskState.TASK_STATE_REJECTED) return;
  throw new OperatorError(`Task ${taskId} ${stateName(state)}: ${oneLine(text) || 'no reason is given'}`);
}

function note({ terminal }: Cli, agent: string, { taskId, state }: TurnEnd): void {
  terminal.err(`Task ${taskId}: ${stateName(state)}`);
  if (state === TaskState.TASK_STATE_INPUT_REQUIRED) {
    terminal.err(`Answer with: npx baton send ${agent} "…" --task ${taskId}`);
  }
}

function buildMessage(text: string, { task, metadata }: SendOptions): Message {
  return {
    messageId: randomUUID(),
    contextId: '',
    taskId: task ?? '',
    role: Role.ROLE_USER,
    parts: [{ content: { $case: 'text', value: text }, metadata: undefined, filename: '', mediaType: '' }],
    metadata: metadata === undefined ? undefined : parseMetadata(metadata),
    extensions: [],
    referenceTaskIds: [],
  };
}

function parseMetadata(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return { ...value };
  } catch {
    // Not JSON: the error below says so.
  }
  throw new OperatorError(
    `--metadata: this is not a JSON object: give one such as '{"echo": {"chunks": 3}}'.`,
  );
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
  const onLost = () => terminal.err('The connection was lost. Continuing after the last event.');
  const following = { client, isOver: isTerminal, onLost };
  for await (const event of follow(client.subscribe(taskId, after), following, { taskId, after })) {
    terminal.out(options.json ? eventJson(event) : eventLine(event));
  }
}

function parseSequence(text: string): number {
  if (/^\d{1,9}$/.test(text)) return Number(text);
  throw new OperatorError(`--after: "${text}" is not the number of an event: give 0, 1, 2 …`);
}
