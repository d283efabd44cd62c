import { dataPart } from '@baton/a2a';
import { schemaFields, type TenantSchemas } from '@baton/contract';
import type { Command } from 'commander';
import { AgentClient } from '../call/agent-client.js';
import { userMessage } from '../call/message.js';
import { type Cli, JSON_OPTION } from '../cli.js';
import { NotFoundError } from '../not-found-error.js';
import { OperatorError } from '../operator-error.js';
import { formatTimeText, oneLine, printTable, printValue } from '../output.js';
import { TOKEN_OPTION, URL_OPTION } from '../server.js';
import { findTarget, MAX_LISTED, type ServerOptions } from '../api.js';
import { taskRecord, tasksClient } from '../tasks/tasks-client.js';
import { UsageError } from '../usage-error.js';
import { jsonOption } from '../json-option.js';
import { parseCount } from '../options.js';

const TITLES = ['task', 'call', 'tool', 'input', 'what is asked', 'since', 'expires', 'agents'];

interface AnswerOptions extends ServerOptions {
  call?: string[];
  reason?: string;
  input?: string;
}

/** `baton approvals …`: tool calls that wait for a person. */
export function addApprovalCommands(program: Command, cli: Cli): void {
  const approvals = program.command('approvals').description('tool calls that wait for a person');
  const add = (name: string, description: string): Command =>
    approvals
      .command(name)
      .description(description)
      .option(...URL_OPTION)
      .option(...TOKEN_OPTION)
      .option(...JSON_OPTION);
  const answer = (name: string, description: string): Command =>
    add(name, `${description}; needs a token with \`tasks:approve\` and \`agents:call\``)
      .argument('<task>', 'id of the task')
      .option('--call <ids...>', 'only these calls (default: all that wait now)');

  add('list', 'list the waiting calls of all tasks that the token sees, latest first')
    .option('--limit <number>', `maximum number of waiting tasks, up to ${MAX_LISTED}`, '1000')
    .action((options: ServerOptions & { limit: string }) => list(cli, options));
  answer('approve', 'make the calls')
    .option('--input <json>', 'make the call with this input in place of its own')
    .action((task: string, options: AnswerOptions) => decide(cli, task, true, options));
  answer('reject', 'refuse the calls')
    .option('--reason <text>', 'the reason, for the model')
    .action((task: string, options: AnswerOptions) => decide(cli, task, false, options));
}

async function list(cli: Cli, options: ServerOptions & { limit: string }): Promise<void> {
  const client = tasksClient(cli, options);
  const waiting = await client.list(
    { state: 'input-required' },
    parseCount('--limit', options.limit, MAX_LISTED),
  );
  const asking = waiting.filter(({ approvals = [] }) => approvals.length > 0);
  if (options.json) return void printValue(cli.terminal, asking.map(taskRecord));
  const slugs = asking.length > 0 ? await client.slugs() : new Map<string, string>();
  const rows = asking.flatMap((request) => rowsOf(request, slugs));
  printTable(cli.terminal, TITLES, rows, 'No call waits for a person.');
}

const rowsOf = (
  { task_id: id, agent_id: agent, updated_at: at, approvals = [] }: TenantSchemas['TaskSummary'],
  slugs: ReadonlyMap<string, string>,
): string[][] =>
  approvals.map((approval) => [
    id,
    approval.call_id,
    toolOf(approval),
    oneLine(inputOf(approval), 60),
    oneLine(approval.description, 60) || '-',
    formatTimeText(at),
    formatTimeText(approval.expires_at),
    // From the agent of the task to the one that asks.
    (approval.agents ?? [slugs.get(agent) ?? agent]).join(' → '),
  ]);

function toolOf({ tool, server, unknown_outcome: isUnknown }: TenantSchemas['Approval']): string {
  const notes = [
    ...(server === undefined ? [] : [`server ${server}`]),
    ...(isUnknown ? ['again: its outcome is unknown'] : []),
  ];
  return notes.length === 0 ? tool : `${tool} (${notes.join(', ')})`;
}

/** The input of a call; of a question of a tool, the fields of its form or the address to open. */
function inputOf({ input, question }: TenantSchemas['Approval']): string {
  if (!question) return JSON.stringify(input);
  if ('url' in question) return question.url;
  const fields = schemaFields(question.requested_schema);
  return fields ? `form: ${fields.map(({ label }) => label).join(', ')}` : 'form';
}

/** Sends the answer and does not wait for the outcome. */
async function decide(cli: Cli, taskId: string, approved: boolean, options: AnswerOptions): Promise<void> {
  const client = tasksClient(cli, options);
  const found = await client.get(taskId);
  const calls = callsOf(found, options.call);
  const { reason } = options;
  const input = options.input === undefined ? undefined : jsonOption('--input', options.input);
  if (input !== undefined && calls.length > 1)
    throw new UsageError('--input: several calls wait. Name the one whose input you change with --call.');
  const parts = calls.map((callId) =>
    dataPart({
      approval: {
        callId,
        approved,
        ...(reason !== undefined && { reason }),
        ...(input !== undefined && { input }),
      },
    }),
  );
  const agent = await AgentClient.connect(findTarget(cli.source, options), found.agent_id);
  await agent.post(userMessage(parts, taskId));
  const verb = approved ? 'approved' : 'rejected';
  if (options.json) return void printValue(cli.terminal, taskRecord({ task_id: taskId, calls, approved }));
  for (const call of calls) cli.terminal.out(`Call ${call} of task ${taskId} is ${verb}.`);
  cli.terminal.err(`Follow it with: npx baton tasks watch ${taskId}`);
}

/** The calls to answer: those that wait now. So no call is answered that was never shown. */
function callsOf(
  { state, approvals = [] }: TenantSchemas['TaskSummary'],
  wanted: readonly string[] | undefined,
): string[] {
  const waiting = approvals.map(({ call_id: id }) => id);
  if (waiting.length === 0) {
    throw new OperatorError(`no call of it waits for a person; its state is ${state ?? 'unknown'}.`);
  }
  const unknown = wanted?.find((id) => !waiting.includes(id));
  if (unknown === undefined) return wanted ? [...wanted] : waiting;
  throw new NotFoundError(
    `There is no waiting call "${unknown}": those that wait are ${waiting.join(', ')}.`,
  );
}
