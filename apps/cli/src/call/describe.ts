import { eventKindOf, Message, type Part, stateName, StreamResponse, Task, TaskState } from '@baton/a2a';
import { formatTime, oneLine, printable, printNext, type Terminal } from '../output.js';
import type { NumberedEvent, Payload } from './agent-client.js';

const KINDS = { task: 'task', message: 'message', statusUpdate: 'status', artifactUpdate: 'artifact' };

/** One event as one line: `   2  status    working`. */
export function eventLine({ sequence, payload }: NumberedEvent): string {
  const number = (sequence === undefined ? '-' : String(sequence)).padStart(4);
  return `${number}  ${KINDS[payload.$case].padEnd(8)}  ${describe(payload)}`;
}

/** One event as data: its sequence, and the event in the form of the protocol (A2A 1.0). */
const eventRecord = ({ sequence, payload }: NumberedEvent): unknown => ({
  sequence: sequence ?? null,
  event: StreamResponse.toJSON({ payload }),
});

/** The time in the status of an event. Undefined: it has none, as events of artifacts. */
export function statusTime({ payload }: NumberedEvent): Date | undefined {
  const status =
    payload.$case === 'task' || payload.$case === 'statusUpdate' ? payload.value.status : undefined;
  return status?.timestamp ? new Date(status.timestamp) : undefined;
}

/** A time at the beginning of a line: as wide if it is not known. */
export const timeColumn = (at: Date | undefined): string => (at ? formatTime(at) : ' '.repeat(TIME_WIDTH));

const TIME_WIDTH = formatTime(new Date()).length;

/** Print an event as one line, or as data. */
export function printEvent(terminal: Terminal, event: NumberedEvent, asData = false): void {
  if (asData) printNext(terminal, eventRecord(event));
  else terminal.out(eventLine(event));
}

/** An answer in the form of the protocol: `{"task": …}` or `{"message": …}`. */
export const replyJson = (reply: Task | Message): unknown =>
  isTask(reply) ? { task: Task.toJSON(reply) } : { message: Message.toJSON(reply) };

/**
 * The answer of the agent, for people: its artifacts, then its last message. Tool calls and reasoning are no part of
 * it.
 */
export function replyText(reply: Task | Message): string {
  if (!isTask(reply)) return textOf(reply.parts);
  const artifacts = reply.artifacts
    .filter((artifact) => eventKindOf(artifact) === undefined)
    .map(({ parts }) => textOf(parts));
  return [...artifacts, statusText(reply.status)].filter((text) => text !== '').join('\n');
}

export const isTask = (reply: Task | Message): reply is Task => !('messageId' in reply);

/** The text of parts; other parts as JSON or by their name. */
export const textOf = (parts: readonly Part[]): string => printable(parts.map(partText).join(''));

/** The text of a status' message. */
export const statusText = (status: Task['status']): string => textOf(status?.message?.parts ?? []);

function describe(payload: Payload): string {
  switch (payload.$case) {
    case 'task':
      return `${payload.value.id} ${stateLine(payload.value.status)}`;
    case 'statusUpdate':
      return stateLine(payload.value.status);
    case 'artifactUpdate': {
      const { artifact, append } = payload.value;
      const name = artifact?.name || artifact?.artifactId || '';
      return oneLine(`${name}${append ? '+' : ''}: ${textOf(artifact?.parts ?? [])}`);
    }
    case 'message':
      return oneLine(textOf(payload.value.parts));
  }
}

function stateLine(status: Task['status']): string {
  const text = oneLine(statusText(status));
  const state = stateName(status?.state ?? TaskState.TASK_STATE_UNSPECIFIED);
  return text === '' ? state : `${state}: ${text}`;
}

function partText({ content, filename, mediaType }: Part): string {
  switch (content?.$case) {
    case 'text':
      return content.value;
    case 'data':
      return JSON.stringify(content.value);
    case 'url':
      return content.value;
    default:
      return `[${filename || mediaType || 'file'}]`;
  }
}
