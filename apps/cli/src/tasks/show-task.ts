import { Task } from '@baton/a2a';
import type { TenantSchemas } from '@baton/contract';
import type { ServerOptions } from '../api.js';
import { replyText } from '../call/describe.js';
import { printEvents } from '../call/print-events.js';
import type { Cli } from '../cli.js';
import { printFields, printRunError, printTable, printValue } from '../output.js';
import { callRow, fieldsOf, stepRow } from './task-fields.js';
import { timedEvents, timedPrinter, upTo } from './task-log.js';
import { taskRecord, tasksClient, type TasksClient } from './tasks-client.js';

const STEP_TITLES = ['step', 'kind', 'state', 'attempts', 'started', 'ended', 'error'];
const CALL_TITLES = ['model call', 'took', 'model', 'tokens', 'attempt', 'outcome'];
/** The newest events only: a task may have thousands, which `tasks logs` prints. */
const MAX_EVENTS = 20;

/** `baton tasks show`: a task with its model calls, its steps and its newest events. */
export async function showTask(cli: Cli, id: string, options: ServerOptions): Promise<void> {
  const client = tasksClient(cli, options);
  const found = await client.get(id);
  if (options.json) return void printValue(cli.terminal, taskRecord(found));
  const task = Task.fromJSON(found.task);
  const slug = (await client.slugs()).get(found.agent_id) ?? found.agent_id;
  printFields(cli.terminal, fieldsOf(found, task, slug));
  const text = replyText(task);
  if (text !== '') cli.terminal.out(`\n${text}`);
  const { steps = [], model_calls: calls, currency } = found;
  if (calls.length > 0) {
    cli.terminal.out('');
    const titles = currency === null ? CALL_TITLES : [...CALL_TITLES, currency];
    printTable(cli.terminal, titles, calls.map(callRow(currency !== null)), '');
  }
  if (steps.length > 0) {
    cli.terminal.out('');
    printTable(cli.terminal, STEP_TITLES, steps.map(stepRow), '');
  }
  await printNewestEvents(cli, client, found);
  if (found.error) printRunError(cli.terminal, found.error);
}

async function printNewestEvents(
  { terminal }: Cli,
  client: TasksClient,
  { task_id: id, events: head }: TenantSchemas['Task'],
): Promise<void> {
  if (head === 0) return;
  const after = Math.max(0, head - MAX_EVENTS);
  terminal.out('');
  await printEvents(
    timedEvents(client, id, upTo(head, client.subscribe(id, after))),
    timedPrinter(terminal),
    id,
  );
  if (after > 0) terminal.err(`Earlier events: npx baton tasks logs ${id}`);
}
