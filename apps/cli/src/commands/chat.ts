import { isInterrupted, isTerminal, stateName, TaskState } from '@baton/a2a';
import type { Command } from 'commander';
import { createInterface } from 'node:readline';
import { Readable } from 'node:stream';
import { AgentClient } from '../call/agent-client.js';
import { isTask, replyText } from '../call/describe.js';
import { messageOf } from '../call/message.js';
import { findTarget } from '../api.js';
import type { Cli } from '../cli.js';
import { TOKEN_OPTION, URL_OPTION } from '../server.js';

interface ChatOptions {
  url?: string;
  token?: string;
  context?: string;
}

/** `baton chat …`: a conversation with an agent, a line a message. */
export function addChatCommand(program: Command, cli: Cli): void {
  program
    .command('chat')
    .description('talk with an agent: each line of standard input is a message of one conversation')
    .argument('<agent>', 'slug or id of the agent')
    .option(...URL_OPTION)
    .option(...TOKEN_OPTION)
    .option('--context <id>', 'continue this conversation')
    .action((agent: string, options: ChatOptions) => chat(cli, agent, options));
}

async function chat({ source, terminal, stdin }: Cli, agent: string, options: ChatOptions): Promise<void> {
  const client = await AgentClient.connect(findTarget(source, options), agent);
  const typed = stdin();
  const input = typed instanceof Readable ? typed : Readable.from(typed);
  // The prompt goes to standard error, so that standard output has the answers only.
  const isTyped = typed.isTTY === true;
  const lines = createInterface({ input, ...(isTyped && { output: process.stderr, prompt: '> ' }) });
  let { context = '' } = options;
  let task = '';
  if (isTyped) lines.prompt();
  for await (const line of lines) {
    if (line.trim() !== '') {
      const reply = await client.send(messageOf(line, { context, task }));
      terminal.out(replyText(reply));
      context = reply.contextId;
      const state = (isTask(reply) && reply.status?.state) || TaskState.TASK_STATE_UNSPECIFIED;
      // The next line answers a task that asks.
      task = isTask(reply) && isInterrupted(state) ? reply.id : '';
      if (isTask(reply) && isTerminal(state) && state !== TaskState.TASK_STATE_COMPLETED)
        terminal.err(`Task ${reply.id} ${stateName(state)}. Why: npx baton tasks show ${reply.id}`);
    }
    if (isTyped) lines.prompt();
  }
  if (context !== '') terminal.err(`Continue with: npx baton chat ${agent} --context ${context}`);
}
