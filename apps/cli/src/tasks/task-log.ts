import { isTerminal } from '@baton/a2a';
import type { TenantSchemas } from '@baton/contract';
import { setTimeout as delay } from 'node:timers/promises';
import type { ServerOptions } from '../api.js';
import type { NumberedEvent } from '../call/agent-client.js';
import { printEvent, statusTime, timeColumn } from '../call/describe.js';
import { follow } from '../call/follow.js';
import { assertDone, LOST, parseSequence, printEvents, type TurnResult } from '../call/print-events.js';
import type { Cli } from '../cli.js';
import { formatTimeText, printable, printNext, printRunError, type Terminal } from '../output.js';
import { EventTimes } from './event-times.js';
import { tasksClient, type TasksClient } from './tasks-client.js';

export interface LogsOptions extends ServerOptions {
  after: string;
  follow?: boolean;
  console?: boolean;
}

/** `baton tasks watch`: the events of a task until it ends. */
export async function watchTask(
  cli: Cli,
  id: string,
  options: ServerOptions & { after: string },
): Promise<void> {
  const log = followed(cli, id, parseSequence(options.after), options);
  const end = await printLog(cli, id, log, options);
  if (end) assertDone(end);
}

const followed = (cli: Cli, id: string, after: number, options: ServerOptions) => {
  const client = tasksClient(cli, options);
  const onLost = (): void => cli.terminal.err(LOST);
  const following = { client, isOver: isTerminal, onLost };
  return follow(client.subscribe(id, after), following, { taskId: id, after });
};

/** `baton tasks logs`: the events of a task so far. */
export async function printTaskLog(cli: Cli, id: string, options: LogsOptions): Promise<void> {
  const after = parseSequence(options.after);
  const client = tasksClient(cli, options);
  const { events: head } = await client.get(id);
  const log = options.follow
    ? followed(cli, id, after, options)
    : upTo(head, after < head ? client.subscribe(id, after) : nothing());
  await printLog(cli, id, log, options);
  const { error } = await client.get(id);
  if (error && !options.json) printRunError(cli.terminal, error);
}

/** Prints the events of a task as they come: as data, or as lines that begin with the time. */
async function printLog(
  cli: Cli,
  id: string,
  events: AsyncIterable<NumberedEvent>,
  options: ServerOptions,
): Promise<TurnResult | undefined> {
  const { terminal } = cli;
  if (options.json) return printEvents(events, (event) => printEvent(terminal, event, true), id);
  return printEvents(timedEvents(tasksClient(cli, options), id, events), timedPrinter(terminal), id);
}

type TimedEvent = NumberedEvent & { at: Date | undefined };

/** Adds to each event when it was stored. */
export async function* timedEvents(
  client: TasksClient,
  id: string,
  events: AsyncIterable<NumberedEvent>,
): AsyncGenerator<TimedEvent> {
  const times = new EventTimes((sequence) => client.eventTimes(id, sequence));
  for await (const event of events) yield { ...event, at: (await times.timeOf(event)) ?? statusTime(event) };
}

export const timedPrinter =
  (terminal: Terminal) =>
  ({ at, ...event }: TimedEvent): void =>
    printEvent({ ...terminal, out: (line) => terminal.out(`${timeColumn(at)}  ${line}`) }, event);

/** Pause between two reads of the console of a task that has not ended. */
const CONSOLE_POLL_MS = 1_000;

/** `baton tasks logs --console`: what the agent's code has written to its console. */
export async function printTaskConsole(cli: Cli, id: string, options: LogsOptions): Promise<void> {
  const client = tasksClient(cli, options);
  let after = parseSequence(options.after);
  for (let isOver = false; ;) {
    // The last lines of a task are stored a moment after its end: read once more then.
    const wasOver = isOver;
    if (options.follow === true) isOver = isTerminal(await client.stateOf(id));
    for await (const line of client.consoleOf(id, after)) {
      after = line.position;
      if (options.json) printNext(cli.terminal, line);
      else cli.terminal.out(consoleLine(line));
    }
    if (options.follow !== true || wasOver) return;
    await delay(CONSOLE_POLL_MS);
  }
}

const consoleLine = ({ at, attempt, level, text }: TenantSchemas['ConsoleLine']): string =>
  printable(`${formatTimeText(at)}  ${level.padEnd(5)}  attempt ${String(attempt)}  ${text}`);

/** The events up to one of them. */
export async function* upTo(
  head: number,
  events: AsyncIterable<NumberedEvent>,
): AsyncGenerator<NumberedEvent> {
  for await (const event of events) {
    yield event;
    if ((event.sequence ?? 0) >= head) return;
  }
}

async function* nothing(): AsyncGenerator<NumberedEvent> {
  // Its caller has everything.
}
