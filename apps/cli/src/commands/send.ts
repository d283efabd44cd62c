import { endsTurn, type Message, Role, TaskState } from '@baton/a2a';
import type { Command } from 'commander';
import { randomUUID } from 'node:crypto';
import { stateName } from '@baton/a2a';
import { AgentClient, stateIn } from '../a2a/agent-client.js';
import { eventJson, eventLine, isTask, replyJson, replyText, statusText, textOf } from '../a2a/describe.js';
import { follow } from '../a2a/follow.js';
import { findTarget } from '../a2a/target.js';
import { TOKEN_OPTION, URL_OPTION } from '../api-client.js';
import { type Cli, JSON_OPTION, type JsonOption } from '../cli.js';
import { OperatorError } from '../operator-error.js';
import { oneLine, printJson } from '../output.js';

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
    .option('--stream', 'print each event as it comes')
    .option('--task <id>', 'the task that the message goes on with')
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
  const onLost = () => terminal.err('The connection was lost; going on after the last event.');
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
    // Said below.
  }
  throw new OperatorError(
    `--metadata: this is not a JSON object: give one such as '{"echo": {"chunks": 3}}'.`,
  );
}
